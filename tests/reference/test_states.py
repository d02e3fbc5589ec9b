"""The transition table says what the contract says, and no more; and the scripts keep to it, in
whatever order they are sent."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from dtq_conformance.target import STATUSES
from dtq_conformance.target import TERMINAL as TERMINAL_OF_THE_CONTRACT
from dtq_reference import calls
from dtq_reference.calls import Call, Identity, Outcome, Taken
from dtq_reference.errors import DtqError
from dtq_reference.states import TERMINAL, TRANSITIONS
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.reference.engine import ACTOR, GROUP, Ear, Engine, failed, succeeded


def test_the_states_are_those_of_the_contract() -> None:
    assert set(TRANSITIONS) == set(STATUSES)
    assert TERMINAL == TERMINAL_OF_THE_CONTRACT
    assert set().union(*TRANSITIONS.values()) <= set(TRANSITIONS)


def test_a_terminal_state_has_no_way_out_and_every_other_leads_to_one() -> None:
    for state in TRANSITIONS:
        reached, front = {state}, {state}
        while front:
            front = set().union(*(TRANSITIONS[each] for each in front)) - reached
            reached |= front
        assert reached == {state} if state in TERMINAL else reached & TERMINAL


# Whatever is sent -------------------------------------------------------------------------------

LEADS_TO = {"TASK_QUEUED": "queued", "TASK_STARTED": "running", "TASK_SUCCEEDED": "succeeded",
            "TASK_FAILED": "failed", "TASK_RETRY_SCHEDULED": "retrying", "TASK_RETRIED": "queued",
            "TASK_DEAD_LETTERED": "dead_lettered", "TASK_CANCELLED": "cancelled",
            "TASK_EXPIRED": "expired"}
STATE_OF_KEY = {"succeeded": "completed"} | dict.fromkeys(TERMINAL - {"succeeded"}, "failed")
PLACES = st.integers(0, 10_000)
WORKERS = st.sampled_from(["a", "b"])
ENDS = st.sampled_from([succeeded, failed, lambda taken: failed(taken, retryable=False)])


class Lives(RuleBasedStateMachine):
    """Tasks of one installation, and two workers that do what they like with them; after each step
    the key space and the events must fit together, and a call sent again must change nothing."""

    def __init__(self, engine: Engine, ear: Ear) -> None:
        super().__init__()
        self.engine = engine
        self.ear = ear
        self.tasks: list[str] = []
        self.status: dict[str, str] = {}
        self.max_attempts: dict[str, int] = {}
        self.groups_are_whole = True
        self.workers = {name: engine.worker(name) for name in ("a", "b")}
        self.in_hand: dict[str, list[Taken]] = {"a": [], "b": []}
        self.ever_taken: list[tuple[Identity, Taken]] = []
        ear.heard()

    def teardown(self) -> None:
        if left := list(self.engine.redis.scan_iter(f"{self.engine.keys.prefix}*", count=1000)):
            self.engine.redis.delete(*left)

    def twice(self, call: Call) -> Any:
        """What a call answers that is sent twice; the second time it must change nothing."""
        answer = self.engine.run(call)
        self.follow()
        after = self.engine.dump()
        self.engine.run(call)
        assert self.engine.dump() == after
        assert self.ear.types() == []
        return answer

    def some_task(self, place: int) -> str:
        return self.tasks[place % len(self.tasks)] if self.tasks else "0" * 32

    @rule(priority=st.sampled_from([0, 5, 9]), delay_ms=st.sampled_from([0, 0, 60_000]),
          ttl=st.booleans(), key=st.sampled_from([None, None, "k", "l"]),
          max_attempts=st.integers(1, 4))
    def submit(self, ttl: bool, key: str | None, max_attempts: int, **fields: Any) -> None:
        try:
            answer = self.engine.queue.submit(
                task_type="t", idempotency_key=key, max_attempts=max_attempts,
                metadata={"ttl_seconds": 600} if ttl else {}, **fields)
        except DtqError as refusal:
            assert refusal.code == "IDEMPOTENCY_IN_PROGRESS"
            assert self.status[refusal.details["task_id"]] not in TERMINAL
            return
        if answer.duplicate:
            assert self.status[answer.task_id] == answer.status in TERMINAL
            return
        self.tasks.append(answer.task_id)
        self.status[answer.task_id] = "pending"
        self.max_attempts[answer.task_id] = max_attempts

    @rule(name=WORKERS, room=st.integers(1, 3), reap=st.booleans(), is_lost=st.booleans())
    def take(self, name: str, room: int, reap: bool, is_lost: bool) -> None:
        worker = self.workers[name]
        self.engine.renew_leases()
        reply = calls.read_take(self.twice(self.engine.take_call(
            worker, room=room, reap=reap, in_hand=self.in_hand[name])))
        for taken in reply.tasks:
            assert self.engine.record(taken.task_id)["holder"] == worker.consumer
            assert taken.attempt <= taken.max_attempts
            self.ever_taken.append((worker, taken))
        if not is_lost:
            self.in_hand[name] += reply.tasks

    @rule(name=WORKERS, end=ENDS)
    def settle(self, name: str, end: Any) -> None:
        outcomes: list[Outcome] = [end(taken) for taken in self.in_hand[name][:2]]
        del self.in_hand[name][:2]
        self.twice(self.engine.settle_call(self.workers[name], *outcomes))

    @rule(place=PLACES, end=ENDS)
    def settle_whatever_was_ever_taken(self, place: int, end: Any) -> None:
        if self.ever_taken:
            worker, taken = self.ever_taken[place % len(self.ever_taken)]
            self.twice(self.engine.settle_call(worker, end(taken)))

    @rule(name=WORKERS)
    def beat(self, name: str) -> None:
        self.twice(self.engine.renew_call(self.workers[name], *self.in_hand[name]))

    @rule(name=WORKERS)
    def release_all_but_one_and_start_anew(self, name: str) -> None:
        self.twice(self.engine.release_call(self.workers[name], *self.in_hand[name][:1]))
        self.start(name)

    @rule(name=WORKERS)
    def start(self, name: str) -> None:
        self.workers[name], self.in_hand[name] = self.engine.worker(name), []

    @rule(name=WORKERS)
    def say_goodbye(self, name: str) -> None:
        self.twice(self.engine.goodbye_call(self.workers[name]))

    @rule()
    def end_leases(self) -> None:
        self.engine.end_leases()

    @rule()
    def lose_groups(self) -> None:
        self.groups_are_whole = False
        for stream in self.engine.keys.streams("default"):
            self.engine.redis.xgroup_destroy(stream, GROUP)
        for worker in self.workers.values():
            self.engine.run(self.engine.hello(worker, again=True))

    @rule(place=PLACES)
    def promote(self, place: int) -> None:
        self.engine.make_due(self.some_task(place), self.some_task(place + 1))
        self.twice(self.engine.promote_call())

    @rule(place=PLACES)
    def expire(self, place: int) -> None:
        key = self.engine.keys.task_prefix + self.some_task(place)
        if self.engine.redis.hexists(key, "expires_at"):
            self.engine.redis.hset(key, "expires_at", 1)

    @rule(place=PLACES, action=st.sampled_from(["cancel", "cancel", "requeue", "discard"]))
    def administer(self, place: int, action: str) -> None:
        task_id = self.some_task(place)
        if action == "requeue" and self.status.get(task_id) == "dead_lettered":
            self.status[task_id] = "requeued"
        try:
            getattr(self.engine, action)(task_id)
        except DtqError as refusal:
            assert refusal.code in ("TASK_NOT_FOUND", "TASK_TERMINAL", "NOT_REQUEUEABLE")
            if self.status.get(task_id) == "requeued":
                self.status[task_id] = "dead_lettered"

    @rule(action=st.sampled_from(["pause", "resume", "resume"]))
    def pause_or_resume(self, action: str) -> None:
        getattr(self.engine, action)()

    @rule(what=st.sampled_from(["queue", "letters"]))
    def purge(self, what: str) -> None:
        operations = self.engine.operations
        self.engine.do(operations.purge_queue("default", ACTOR) if what == "queue"
                       else operations.purge_dead_letters(ACTOR))
        for worker in self.workers.values():
            self.engine.run(self.engine.hello(worker, again=True))

    @rule()
    def sweep(self) -> None:
        self.twice(self.engine.sweep_call())

    def follow(self) -> None:
        """Let the events lead each task from status to status; no way may be forbidden."""
        for event in self.ear.heard():
            if not (status := LEADS_TO.get(event["type"])):
                continue
            before = self.status[event["task_id"]]
            allowed = TRANSITIONS.get(before, {"queued"}) | (
                {"running"} if before == "running" else set())
            assert status in allowed, f"{before} -> {event}"
            assert 1 <= event["attempt"] <= self.max_attempts[event["task_id"]]
            self.status[event["task_id"]] = status

    @invariant()
    def everything_fits_together(self) -> None:
        self.follow()
        keys, space = self.engine.keys, self.engine.dump()
        records = {task_id: space[keys.task_prefix + task_id][0] for task_id in self.tasks}
        assert {task_id: record[b"status"].decode()
                for task_id, record in records.items()} == self.status
        by_status = {status: sorted(task_id for task_id, its in self.status.items()
                                    if its == status) for status in TRANSITIONS}
        entries = {entry_id: fields[b"task_id"].decode() for stream in keys.streams("default")
                   if stream in space for entry_id, fields in space[stream][0][0]}
        assert sorted(entries.values()) == sorted(by_status["queued"] + by_status["running"])
        scheduled = [member.decode() for member, _ in space.get(keys.schedule, ([],))[0]]
        assert sorted(scheduled) == sorted(by_status["pending"] + by_status["retrying"])
        assert space.get(keys.schedule_depth, ({},))[0] == (
            {b"default": str(len(scheduled)).encode()} if scheduled else {})
        letters = [fields[b"task_id"].decode()
                   for _, fields in space.get(keys.dead_letters, (([],),))[0][0]]
        assert sorted(letters) == sorted(task_id for task_id in by_status["dead_lettered"]
                                         if b"discarded" not in records[task_id])
        pending = {entries[entry_id]: consumer.decode() for stream in keys.streams("default")
                   if stream in space and space[stream][0][1]
                   for entry_id, consumer, _ in space[stream][0][1][3] if entry_id in entries}
        for task_id, status in self.status.items():
            assert space[keys.task_prefix + task_id][1] == (
                status in TERMINAL and task_id not in letters)
            assert (keys.result_prefix + task_id in space) == (status == "succeeded")
            if status == "running" and self.groups_are_whole:
                assert pending[task_id] == records[task_id][b"holder"].decode()
            elif status == "queued":
                assert pending.get(task_id, "released") == "released"
        self.each_key_fits(space, records)

    def each_key_fits(self, space: dict[str, Any], records: dict[str, dict[bytes, bytes]]) -> None:
        unfinished = Counter(record[b"idempotency_key"] for task_id, record in records.items()
                             if b"idempotency_key" in record
                             and self.status[task_id] not in TERMINAL)
        assert set(unfinished.values()) <= {1}
        for key, (value, expires) in space.items():
            if key.startswith(self.engine.keys.idempotency_prefix):
                record = json.loads(value)
                status = self.status[record["task_id"]]
                assert record["state"] == STATE_OF_KEY.get(status, "processing")
                assert expires == (status in TERMINAL)


def live(engine: Engine, *, lives: int, steps: int) -> None:
    engine = engine.with_settings(heartbeat_interval_s=1000)  # no worker is forgotten meanwhile
    ear = engine.listen()
    run_state_machine_as_test(lambda: Lives(engine, ear), settings=settings(  # type: ignore[arg-type]
        max_examples=lives, stateful_step_count=steps, deadline=None))


def test_key_space_and_events_fit_together_whatever_is_sent_in_whatever_order(
        engine: Engine) -> None:
    live(engine, lives=8, steps=30)


@pytest.mark.slow
def test_they_fit_together_in_many_more_lives(engine: Engine) -> None:
    live(engine, lives=60, steps=50)

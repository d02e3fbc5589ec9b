"""The transition table says what the contract says, and no more; and the scripts keep to it, in
whatever order they are sent."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from dtq_conformance.target import STATUSES
from dtq_conformance.target import TERMINAL as TERMINAL_OF_THE_CONTRACT
from dtq_reference import calls
from dtq_reference.calls import Call, Identity, Outcome, Taken
from dtq_reference.errors import DtqError
from dtq_reference.states import TERMINAL, TRANSITIONS

from tests.reference.engine import ACTOR, GROUP, Engine, failed, succeeded


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
ENDS: list[Callable[[Taken], Outcome]] = [
    succeeded, failed, failed, lambda taken: failed(taken, retryable=False)]


class Lives:
    """Tasks of one installation, and two workers that do what they like with them; after each step
    the key space and the events must fit together, and a call sent again must change nothing."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.ear = engine.listen()
        self.draw = random.Random(seed)
        self.tasks: list[str] = []
        self.status: dict[str, str] = {}
        self.max_attempts: dict[str, int] = {}
        self.groups_are_whole = True
        self.workers: dict[str, Identity] = {}
        self.in_hand: dict[str, list[Taken]] = {}
        self.ever_taken: list[tuple[Identity, Taken]] = []
        self.sent: list[Call] = []
        self.done: list[str] = []
        for name in ("a", "b"):
            self.start(name)

    def twice(self, call: Call) -> Any:
        """What a call answers that is sent twice; the second time it must change nothing."""
        self.sent.append(call)
        answer = self.engine.run(call)
        self.follow()
        after = self.engine.dump()
        self.engine.run(call)
        assert self.engine.dump() == after
        assert self.ear.types() == []
        return answer

    def start(self, name: str) -> None:
        self.workers[name], self.in_hand[name] = self.engine.worker(name), []

    def worker(self) -> str:
        return self.draw.choice(["a", "b"])

    def task(self) -> str:
        return self.draw.choice(self.tasks or ["0" * 32])

    def submit(self) -> None:
        draw = self.draw
        max_attempts = draw.randint(1, 4)
        try:
            answer = self.engine.queue.submit(
                task_type="t", max_attempts=max_attempts, priority=draw.choice([0, 5, 9]),
                delay_ms=draw.choice([0, 0, 0, 60_000]),
                idempotency_key=draw.choice([None, None, "k", "l"]),
                metadata=draw.choice([{}, {"ttl_seconds": 600}]))
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

    def take(self) -> None:
        name = self.worker()
        worker = self.workers[name]
        self.engine.renew_leases()
        reply = calls.read_take(self.twice(self.engine.take_call(
            worker, room=self.draw.randint(1, 3), reap=self.draw.random() < 0.7,
            in_hand=self.in_hand[name])))
        for taken in reply.tasks:
            assert self.engine.record(taken.task_id)["holder"] == worker.consumer
            assert taken.attempt <= taken.max_attempts
            self.ever_taken.append((worker, taken))
        if self.draw.random() < 0.8:  # else the answer is lost
            self.in_hand[name] += reply.tasks

    def settle(self) -> None:
        name = self.worker()
        self.twice(self.engine.settle_call(self.workers[name], *(
            self.draw.choice(ENDS)(taken) for taken in self.in_hand[name][:2])))
        del self.in_hand[name][:2]

    def settle_whatever_was_ever_taken(self) -> None:
        if self.ever_taken:
            worker, taken = self.draw.choice(self.ever_taken)
            self.twice(self.engine.settle_call(worker, self.draw.choice(ENDS)(taken)))

    def beat(self) -> None:
        name = self.worker()
        self.twice(self.engine.renew_call(self.workers[name], *self.in_hand[name]))

    def stop(self) -> None:
        name = self.worker()
        worker, started = self.workers[name], self.in_hand[name][:1]
        self.twice(self.engine.release_call(worker, *started))
        if self.draw.random() < 0.5:
            self.twice(self.engine.settle_call(worker, *map(self.draw.choice(ENDS), started)))
        self.twice(self.engine.goodbye_call(worker))
        self.start(name)

    def die(self) -> None:
        self.start(self.worker())

    def end_leases(self) -> None:
        self.engine.end_leases()

    def promote(self) -> None:
        self.engine.make_due(*(self.task() for _ in range(5)))
        self.twice(self.engine.promote_call())

    def expire(self) -> None:
        key = self.engine.keys.task_prefix + self.task()
        if self.engine.redis.hexists(key, "expires_at"):
            self.engine.redis.hset(key, "expires_at", 1)

    def administer(self) -> None:
        """Cancel, requeue or discard: only the requeue of a dead letter leads out of a status."""
        task_id, action = self.task(), self.draw.choice(["cancel", "requeue", "requeue", "discard"])
        status = self.status.get(task_id)
        if action == "requeue" and task_id in self.engine.letters():
            self.status[task_id] = "requeued"
        try:
            getattr(self.engine, action)(task_id)
        except DtqError as refusal:
            assert refusal.code in ("TASK_NOT_FOUND", "TASK_TERMINAL", "NOT_REQUEUEABLE")
            assert self.status.get(task_id) == status

    def rule_the_queue(self) -> None:
        engine, operations = self.engine, self.engine.operations
        engine.do(self.draw.choice([
            operations.pause("default", ACTOR), operations.purge_queue("default", ACTOR),
            operations.purge_dead_letters(ACTOR)]))
        self.say_hello_again()
        self.everything_fits_together()
        engine.resume()

    def lose_groups(self) -> None:
        self.groups_are_whole = False
        for stream in self.engine.keys.streams("default"):
            self.engine.redis.xgroup_destroy(stream, GROUP)
        self.say_hello_again()

    def send_an_old_call_again(self) -> None:
        """One that was long under way, or whose answer was lost; nobody reads its answer now."""
        if self.sent:
            self.engine.renew_leases()
            self.engine.run(self.draw.choice(self.sent[-20:]))

    def say_hello_again(self) -> None:
        for worker in self.workers.values():
            self.engine.run(self.engine.hello(worker, again=True))

    def sweep(self) -> None:
        self.twice(self.engine.sweep_call())

    STEPS = ((submit, 8), (take, 10), (settle, 6), (settle_whatever_was_ever_taken, 2), (beat, 1),
             (stop, 2), (die, 2), (end_leases, 3), (promote, 4), (expire, 1), (administer, 4),
             (rule_the_queue, 1), (lose_groups, 1), (sweep, 1), (send_an_old_call_again, 3))
    """Each with its weight."""

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            (step,) = self.draw.choices(*zip(*self.STEPS, strict=True))
            self.done.append(step.__name__)
            step(self)
            self.everything_fits_together()

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

    def everything_fits_together(self) -> None:
        self.follow()
        keys, space = self.engine.keys, self.engine.dump()
        records = {task_id: space[keys.task_prefix + task_id][0] for task_id in self.tasks}
        assert {task_id: record[b"status"].decode()
                for task_id, record in records.items()} == self.status
        by_status = {status: sorted(task_id for task_id, its in self.status.items()
                                    if its == status) for status in TRANSITIONS}
        streams = {stream: space[stream][0] for stream in keys.streams("default")
                   if stream in space}
        entries = {(stream, entry_id): fields[b"task_id"].decode()
                   for stream, (found, _) in streams.items() for entry_id, fields in found}
        assert sorted(entries.values()) == sorted(by_status["queued"] + by_status["running"])
        scheduled = [member.decode() for member, _ in space.get(keys.schedule, ([],))[0]]
        assert sorted(scheduled) == sorted(by_status["pending"] + by_status["retrying"])
        assert space.get(keys.schedule_depth, ({},))[0] == (
            {b"default": str(len(scheduled)).encode()} if scheduled else {})
        letters = [fields[b"task_id"].decode()
                   for _, fields in space.get(keys.dead_letters, (([],),))[0][0]]
        assert sorted(letters) == sorted(task_id for task_id, record in records.items()
                                         if b"letter_id" in record)
        assert set(letters) <= set(by_status["dead_lettered"])
        assert len(letters) <= self.engine.settings.dlq_maxlen
        pending = {entries[stream, entry_id]: consumer.decode()
                   for stream, (_, group) in streams.items() if group
                   for entry_id, consumer, _ in group[3]}
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


def live(engine: Engine, seed: int, *, steps: int) -> None:
    engine = engine.with_settings(
        dlq_maxlen=3, heartbeat_interval_s=1000)  # no worker is forgotten meanwhile
    lives = Lives(engine, seed)
    try:
        lives.go_on(steps)
    except AssertionError as error:
        error.add_note(f"seed {seed}, steps: {', '.join(lives.done)}")
        raise


@pytest.mark.parametrize("seed", range(4))
def test_key_space_and_events_fit_together_whatever_is_sent_in_whatever_order(
        engine: Engine, seed: int) -> None:
    live(engine, seed, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 124))
def test_they_fit_together_in_longer_lives(engine: Engine, seed: int) -> None:
    live(engine, seed, steps=120)

"""Each mark, held and not held, on small histories: proof that a fault bit, from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from dtq_chaos import marks
from dtq_chaos.marks import ReadMark
from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance.history import Effect, Record

from tests.conformance.histories import (
    T,
    U,
    V,
    born,
    end,
    fault,
    gone,
    history,
    killed,
    ran,
    start,
)

Story = Sequence[Any]

EFFECT: dict[str, Effect] = {
    "kill_worker": "killed", "kill_all_workers": "killed", "kill_leader": "killed",
    "kill_producer": "killed", "stop_worker": "stopped", "terminate_worker": "terminated",
    "delete_task": "deleted", "lose_submission_reply": "reply_lost",
    "lose_settlement_reply": "reply_lost", "cut_link": "cut", "delay_link": "delayed",
    "starve_link": "delayed"}


def bite(name: str, at: int = 100, to: int | None = None, *, by: int | None = None,
         number: int = 0, **detail: Any) -> list[Record]:
    """A fault of this kind, on worker `by`, that began, bit and, by `to` or at once, ended."""
    return [msgspec.structs.replace(record, fault=name, detail=detail)
            for record in fault(EFFECT[name], at, at if to is None else to, worker=by,
                                number=number)]


def hands(open_: list[str], *, in_hand: list[str] | None = None, unstarted: Sequence[str] = (),
          concurrency: int = 2) -> dict[str, Any]:
    return {"open": open_, "in_hand": in_hand or open_, "unstarted": list(unstarted),
            "concurrency": concurrency, "worker": "worker-1"}


def killed_with(*open_: list[str]) -> Story:
    return [bite("kill_worker", 100 * number, number=number, **hands(each))
            for number, each in enumerate(open_)]


ZOMBIE = [bite("stop_worker", 100, 1500, by=1, **hands([T])), start(50),
          ran(1200, 1400, by=2, attempt=2)]

SPELL = bite("cut_link", 100, 500, by=1, in_hand=[T])

HELD: list[tuple[ReadMark, Story]] = [
    (marks.killed_mid_handler(), killed_with([T])),
    (marks.killed_mid_handler(times=2), killed_with([T], [U])),
    (marks.same_task(times=2), killed_with([T, U], [U])),
    (marks.hands_full(), [bite("kill_worker", **hands([T], in_hand=[T, U]))]),
    (marks.zombie(), [*ZOMBIE, end(1600)]),
    (marks.terminated_mid_handler(), [bite("terminate_worker", **hands([T]))]),
    (marks.beyond_drain_limit(), [bite("terminate_worker", by=1, **hands([T])), start(50)]),
    (marks.beyond_drain_limit(), [bite("terminate_worker", by=1, **hands([T])),
                                  ran(50, 3100, outcome="cancelled")]),
    (marks.taken_and_not_started(count=2),
     [bite("terminate_worker", **hands([], in_hand=[T, U], unstarted=[T, U]))]),
    (marks.worker_killed_itself(times=2),
     [born(1, 2, 3), gone(1, 50, signal=9), gone(2, 60, signal=9), killed(3, 70)]),
    (marks.sent_twice(of="submission"),
     [bite("lose_submission_reply", of="submission", sent=2, entries=1)]),
    (marks.sent_twice(of="settlement"),
     [bite("lose_settlement_reply", of="settlement", sent=3, entries=0)]),
    (marks.task_deleted(), [bite("delete_task", task_id=T)]),
    (marks.all_killed(workers=2, unfinished=3),
     [bite("kill_all_workers", hands=[hands([T]), hands([U])], entries=3)]),
    (marks.others_went_on(during="cut_link"), [SPELL, ran(200, 300, T, by=2)]),
    (marks.took_new_work(after="cut_link"), [SPELL, start(600, V)]),
    (marks.links_delayed(links=2),
     [bite("delay_link", number=number, seen_ms=seen, latency_ms=60, jitter_ms=20)
      for number, seen in enumerate((40, 90))]),
    (marks.worked_under("cut_link", starts=1), [SPELL, ran(200, 300)]),
    (marks.worked_under("cut_link", starts=1), [SPELL, start(50)]),
    (marks.heartbeats_late(), [bite("starve_link", gaps_ms=[200, 400, 500], in_hand=[T])]),
    (marks.leader_killed(), [bite("kill_leader", worker="worker-1", lock_names="worker-1",
                                  lock_left_ms=400, due_in_ms={T: 100, U: 300, V: 900})]),
    (marks.killed_mid_submission(), [bite("kill_producer", answered=3, in_flight=T)]),
]

NOT_HELD: list[tuple[ReadMark, Story, str]] = [
    (marks.killed_mid_handler(), killed_with([]), "nothing was running"),
    (marks.killed_mid_handler(times=2), killed_with([T]), "one kill is missing"),
    (marks.killed_mid_handler(times=1), killed_with([T], [U]), "one kill too many"),
    (marks.killed_mid_handler(times=2), killed_with([T], []), "the second came too late"),
    (marks.killed_mid_handler(), [bite("stop_worker", **hands([T]))], "it was stopped only"),
    (marks.same_task(times=2), killed_with([T], [U]), "two tasks"),
    (marks.same_task(times=2), killed_with([T]), "one kill is missing"),
    (marks.hands_full(), [bite("kill_worker", **hands([T]))], "one of two"),
    (marks.hands_full(), [bite("kill_worker", **hands([T], in_hand=[T, U, V]))], "three of two"),
    (marks.zombie(), ZOMBIE, "the stopped holder never ended"),
    (marks.zombie(), [*ZOMBIE, end(1300)], "it ended before the new holder did"),
    (marks.zombie(), [ZOMBIE[0], ran(50, 1600)], "there was no new holder"),
    (marks.terminated_mid_handler(), [bite("terminate_worker", **hands([]))], "nothing was open"),
    (marks.beyond_drain_limit(), [bite("terminate_worker", by=1, **hands([T])),
                                  ran(50, 200)], "the handler ended well"),
    (marks.beyond_drain_limit(), [bite("terminate_worker", by=1, **hands([T])),
                                  start(50, by=2)], "another worker's handler"),
    (marks.taken_and_not_started(count=2),
     [bite("terminate_worker", **hands([T], in_hand=[T, U], unstarted=[U]))], "one had started"),
    (marks.taken_and_not_started(count=2),
     [bite("terminate_worker", **hands([], in_hand=[T], unstarted=[T]))], "one in hand only"),
    (marks.worker_killed_itself(times=1), [born(1), killed(1, 50)], "it was killed from outside"),
    (marks.worker_killed_itself(times=1), [born(1), gone(1, 50, code=1)], "it exited"),
    (marks.worker_killed_itself(times=2), [born(1), gone(1, 50, signal=9)], "once only"),
    (marks.sent_twice(of="submission"),
     [bite("lose_submission_reply", of="submission", sent=1, entries=1)], "sent once"),
    (marks.sent_twice(of="submission"),
     [bite("lose_submission_reply", of="submission", sent=2, entries=2)], "done twice"),
    (marks.sent_twice(of="settlement"),
     [bite("lose_settlement_reply", of="settlement", sent=2, entries=1)], "not settled"),
    (marks.sent_twice(of="settlement"),
     [bite("lose_submission_reply", of="submission", sent=2, entries=1)], "another reply"),
    (marks.task_deleted(), [bite("delete_task", task_id=None)], "none was to be found"),
    (marks.all_killed(workers=2, unfinished=1),
     [bite("kill_all_workers", hands=[hands([T])], entries=3)], "one worker only"),
    (marks.all_killed(workers=2, unfinished=1),
     [bite("kill_all_workers", hands=[hands([T]), hands([])], entries=3)], "one had empty hands"),
    (marks.all_killed(workers=1, unfinished=5),
     [bite("kill_all_workers", hands=[hands([T])], entries=4)], "too much was done by then"),
    (marks.others_went_on(during="cut_link"), [SPELL, ran(200, 300, T, by=1)], "it was the victim"),
    (marks.others_went_on(during="cut_link"), [SPELL, ran(200, 300, U, by=2)], "T was left"),
    (marks.others_went_on(during="cut_link"), [SPELL, ran(200, 600, T, by=2)], "too late"),
    (marks.took_new_work(after="cut_link"), [SPELL, start(300, V)], "before it was mended"),
    (marks.took_new_work(after="cut_link"), [SPELL, start(600, V, by=2)], "another worker"),
    (marks.links_delayed(links=1),
     [bite("delay_link", seen_ms=39, latency_ms=60, jitter_ms=20)], "too fast"),
    (marks.links_delayed(links=2),
     [bite("delay_link", seen_ms=60, latency_ms=60, jitter_ms=20)], "one link only"),
    (marks.worked_under("cut_link", starts=1), [SPELL, ran(600, 700)], "after it"),
    (marks.worked_under("cut_link", starts=1), [SPELL, ran(200, 300, by=2)], "another worker"),
    (marks.worked_under("cut_link", starts=2), [SPELL, ran(200, 300)], "too little"),
    (marks.heartbeats_late(), [bite("starve_link", gaps_ms=[500, 200], in_hand=[T])], "one late"),
    (marks.heartbeats_late(), [bite("starve_link", gaps_ms=[500, 500], in_hand=[])], "no hands"),
    (marks.leader_killed(), [bite("kill_leader", worker="worker-1", lock_names="worker-2",
                                  lock_left_ms=400, due_in_ms={T: 500, U: 500})], "no leader"),
    (marks.killed_mid_submission(), [bite("kill_producer", answered=3, in_flight=None)],
     "it waited for nothing"),
    (marks.killed_mid_submission(), [bite("kill_producer", answered=0, in_flight=T)],
     "nothing was ever answered"),
]


def named(mark: ReadMark) -> str:
    return mark(history()).name


@pytest.mark.parametrize(("mark", "story"), HELD, ids=[named(mark) for mark, _ in HELD])
def test_a_mark_is_held_where_the_fault_bit_as_it_was_meant_to(
        mark: ReadMark, story: Story) -> None:
    found = mark(history(*story))
    assert found.held, found.sentence
    assert found.sentence.endswith(".")
    assert msgspec.json.encode(found)


@pytest.mark.parametrize(("mark", "story", "why"), NOT_HELD,
                         ids=[f"{named(mark)}: {why}" for mark, _, why in NOT_HELD])
def test_a_mark_is_not_held_where_the_fault_bit_otherwise(
        mark: ReadMark, story: Story, why: str) -> None:
    found = mark(history(*story))
    assert not found.held, f"{why}: {found.sentence}"
    assert found.sentence.endswith(".")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_mark_of_a_scenario_is_held_where_nothing_happened(scenario: str) -> None:
    story = [born(1, 2, 3), ran(20, 40), ran(50, 60, U, by=2)]
    found = [mark(history(*story)) for mark in SCENARIOS[scenario].marks]
    assert found
    assert [mark.name for mark in found if mark.held] == []


def test_each_mark_is_shown_held_and_not_held() -> None:
    makers = {name for name, value in vars(marks).items()
              if getattr(value, "__module__", "") == marks.__name__
              and getattr(value, "__annotations__", {}).get("return") == "ReadMark"}
    assert {named(mark) for mark, _ in HELD} == makers
    assert {named(mark) for mark, _, _ in NOT_HELD} == makers

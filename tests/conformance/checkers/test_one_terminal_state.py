"""one_terminal_state: observations follow the table, and an end stays what it was."""

from __future__ import annotations

import pytest
from dtq_conformance import lives
from dtq_conformance.checkers.one_terminal_state import check

from tests.conformance.histories import (
    T,
    absent,
    accuses,
    asked,
    born,
    dead,
    end,
    fault,
    history,
    look,
    ran,
    says,
    start,
    submit,
)

ZOMBIE = [submit(), born(1, 2), start(100), start(1300, attempt=2, by=2), end(1500)]
"""Attempt 1 ends at 1 500 ms, after attempt 2 has started."""


@pytest.mark.parametrize(("was", "now", "verdict"), [
    ("queued", "running", "holds 1"), ("queued", "dead_lettered", "holds 1"),
    ("running", "queued", "holds 1"), ("running", "running", "holds 1"),
    ("pending", "succeeded", "holds 1"), ("retrying", "running", "holds 1"),
    ("running", "pending", "violated 1"), ("queued", "pending", "violated 1"),
    ("queued", "asleep", "violated 1"), ("succeeded", "queued", "violated 1")])
def test_observations_follow_the_transition_table(was: str, now: str, verdict: str) -> None:
    story = [look(status=was, by=None, at=100), look(status=now, by=None, at=200)]
    assert says(check, *story)["STATE-01"] == verdict


def test_looks_at_the_same_time_have_no_order() -> None:
    assert says(check, look(status="running", at=100), look(status="pending", at=100)) == {}


def test_a_finished_task_stays_what_it_was() -> None:
    first = look(at=100)
    assert says(check, first, look(at=200)) == {"STATE-01": "holds 1", "STATE-02": "holds 1"}
    assert says(check, first, look(at=200, attempt=2, by=2)) == {
        "STATE-01": "holds 1", "STATE-02": "violated 1"}
    assert says(check, first, dead(at=200)) == {
        "STATE-01": "violated 1", "STATE-02": "violated 1"}
    assert says(check, first, absent(at=200)) == {"STATE-02": "violated 1"}


def test_the_accusation_says_what_became_what() -> None:
    assert accuses(check, "STATE-02", look(at=100, result=1), look(at=200, result=2)) == (
        f"Task {T} was finished ('succeeded') at 100 ms and had changed at 200 ms: result 1 "
        "became 2.")


def test_the_result_names_the_execution_that_ended_well() -> None:
    story = [submit(), born(1), ran(20, 30)]
    assert says(check, *story, look()) == {"STATE-03": "holds 1"}
    assert says(check, *story, look(by=2)) == {"STATE-03": "violated 1"}
    assert says(check, *story, look(attempt=2)) == {"STATE-03": "violated 1"}
    assert says(check, *story, look(by=None)) == {"STATE-03": "violated 1"}
    assert says(check, submit(), born(1), ran(20, 30, outcome="failed"), look()) == {
        "STATE-03": "violated 1"}


def test_the_result_is_the_value_that_the_handler_returns() -> None:
    story = [submit(steps=[{"return": 42}]), born(1), ran(20, 30)]
    assert says(check, *story, look(result=42)) == {"STATE-03": "holds 1"}
    assert says(check, *story, look(result=41)) == {"STATE-03": "violated 1"}


def test_a_superseded_holder_does_not_give_the_result() -> None:
    both = [*ZOMBIE, end(1400, attempt=2, by=2)]
    assert says(check, *both, look(attempt=2, by=2))["DLV-08"] == "holds 1"
    assert says(check, *both, look(attempt=1, by=1))["DLV-08"] == "violated 1"
    assert accuses(check, "DLV-08", *both, look(attempt=1, by=1)) == (
        f"attempt 1 by worker-1 (pid 101) of task {T} ended ok at 1 500 ms, after attempt 2 had "
        "started at 1 300 ms; yet its result is the task's at 60 000 ms.")


def test_a_superseded_holder_does_not_settle_the_task_under_its_successor() -> None:
    running = [*ZOMBIE, end(3000, attempt=2, by=2), look(attempt=2, by=2)]
    for status in ("succeeded", "dead_lettered", "retrying"):
        early = look(status=status, by=None, at=2000, attempt=2)
        assert says(check, *running, early)["DLV-08"] == "violated 1"
    assert says(check, *running, look(status="running", at=2000))["DLV-08"] == "holds 1"


def test_the_status_is_that_of_the_later_attempt() -> None:
    good = [*ZOMBIE, end(1600, attempt=2, by=2)]
    failed = [*ZOMBIE, end(1600, outcome="failed", attempt=2, by=2)]
    zombie_failed = [*ZOMBIE[:4], end(1500, outcome="failed"), end(1600, attempt=2, by=2)]
    assert says(check, *failed, look(by=None))["DLV-08"] == "violated 1"
    assert says(check, *failed, dead(attempt=2))["DLV-08"] == "holds 1"
    assert says(check, *zombie_failed, dead(attempt=2))["DLV-08"] == "violated 1"
    assert says(check, *good, dead(attempt=2, error_class="WorkerLost"))["DLV-08"] == "holds 1"


def test_an_execution_that_ended_before_its_successor_started_is_not_superseded() -> None:
    assert "DLV-08" not in says(check, submit(), born(1), ran(20, 30, outcome="failed"),
                                ran(60, 70, attempt=2), look(attempt=2))


def test_a_holder_that_died_before_it_recorded_its_success_may_be_worker_lost() -> None:
    story = [*ZOMBIE[:4], end(1500, outcome="failed"), end(1600, attempt=2, by=2)]
    assert says(check, *story, dead(attempt=2, error_class="WorkerLost"))["DLV-08"] == "holds 1"


def test_a_task_whose_last_holder_was_stopped_too_ends_beside_its_handler() -> None:
    ended = dead(attempt=2, error_class="WorkerLost", at=4000)
    stopped = fault("stopped", 1400, 5000, worker=2)
    late = end(5100, attempt=2, by=2)
    assert says(check, *ZOMBIE, ended, late)["DLV-08"] == "violated 1"
    assert says(check, *ZOMBIE, stopped, ended, late)["DLV-08"] == "holds 1"


def lived_again(*looks: object) -> list[object]:
    """A task that failed for good, was requeued at 400 ms, and executes from 500 to 1 500 ms."""
    return [submit(), born(1), ran(100, 200, outcome="failed"), dead(at=300),
            asked("requeue", T, at=400), ran(500, 1500, outcome="failed"), *looks]


@pytest.mark.parametrize(("seen", "verdict"), [
    (look(status="running", at=1000), "holds 1"), (dead(at=1000), "violated 1"),
    (look(status="retrying", at=1000, error_class="RetryableError"), "violated 1"),
    (dead(at=1000, error_class="WorkerLost"), "holds 1"), (dead(at=1600), None)])
def test_no_outcome_of_an_earlier_life_ends_the_new_one(seen: object, verdict: str | None) -> None:
    told = check(lives.apart(history(*lived_again(seen))))
    found = {each.clause: f"{each.status} {each.judged}" for each in told if each.judged}
    assert found.get("DLV-08") == verdict

"""attempts_bounded: each start has its own number, and failures are retried as they should be."""

from __future__ import annotations

from dtq_conformance.checkers.attempts_bounded import check

from tests.conformance.histories import (
    Part,
    T,
    absent,
    accuses,
    born,
    dead,
    fault,
    killed,
    look,
    ran,
    says,
    start,
    submit,
)

RETRYABLE = submit(steps=[{"fail": "retryable", "until_attempt": 1}], max_attempts=3)
PERMANENT = submit(steps=[{"fail": "permanent"}], max_attempts=3)
FAILED = ran(20, 30, outcome="failed")


def test_a_task_is_started_at_most_as_often_as_it_may() -> None:
    twice = [ran(20, 30, outcome="failed"), ran(60, 70, attempt=2)]
    assert says(check, submit(max_attempts=2), twice) == {
        "RETRY-01": "holds 1", "RETRY-02": "holds 2"}
    assert says(check, submit(max_attempts=1), twice) == {
        "RETRY-01": "violated 1", "RETRY-02": "violated 2"}
    assert f"Task {T} may be started 1 times and was started 2 times" in accuses(
        check, "RETRY-01", submit(max_attempts=1), twice)


def test_each_start_has_a_higher_number_than_the_one_before() -> None:
    def numbered(*attempts: int) -> str:
        starts = [ran(100 * n, 100 * n + 50, attempt=attempt, outcome="failed")
                  for n, attempt in enumerate(attempts)]
        return says(check, submit(max_attempts=3), starts)["RETRY-02"]

    assert numbered(1) == "holds 1"
    assert numbered(1, 2, 3) == "holds 3"
    assert numbered(1, 3) == "holds 2"
    assert numbered(1, 1) == "violated 2"
    assert numbered(2, 1) == "violated 2"
    assert numbered(0) == "violated 1"
    assert numbered(1, 4) == "violated 2"


def test_a_holder_that_was_held_up_may_start_after_its_successor() -> None:
    late = [submit(), born(1, 2), ran(1300, 1400, attempt=2, by=2), start(1500)]
    assert says(check, *late, fault("stopped", 100, 1490, worker=1))["RETRY-02"] == "holds 2"
    assert says(check, *late)["RETRY-02"] == "violated 2"


def test_a_task_that_nobody_submitted_has_no_budget_to_judge_by() -> None:
    assert says(check, ran(20, 30)) == {}


def test_a_retryable_failure_is_followed_by_another_attempt() -> None:
    def then(*parts: Part) -> str:
        return says(check, RETRYABLE, born(1), FAILED, *parts)["RETRY-03"]

    assert then(ran(60, 70, attempt=2), look(attempt=2)) == "holds 1"
    assert then(look(status="retrying")) == "violated 1"
    assert then(dead()) == "violated 1"
    assert then(absent()) == "violated 1"
    assert then(look(status="cancelled")) == "holds 1"
    assert then(dead(error_class="WorkerLost", attempt=3)) == "holds 1"
    assert then(look(status="retrying", at=100)) == "unknown 0"
    assert then() == "unknown 0"


def test_a_retryable_failure_of_the_last_attempt_needs_no_other() -> None:
    last = submit(steps=[{"fail": "retryable"}], max_attempts=1)
    assert "RETRY-03" not in says(check, last, born(1), FAILED, dead())


def test_the_missing_attempt_is_told_with_the_budget_that_was_left() -> None:
    assert accuses(check, "RETRY-03", RETRYABLE, born(1), FAILED, look(status="retrying")) == (
        f"attempt 1 by worker-1 (pid 101) of task {T} failed at 30 ms in a way that is worth a "
        "retry, with 2 of 3 attempts left, but no attempt followed: the task is 'retrying' at "
        "60 000 ms.")


def test_a_permanent_failure_is_not_attempted_again() -> None:
    assert says(check, PERMANENT, born(1), FAILED, dead())["RETRY-04"] == "holds 1"
    assert says(check, PERMANENT, born(1), FAILED, ran(60, 70, attempt=2, outcome="failed"),
                dead(attempt=2))["RETRY-04"] == "violated 2"


def test_any_exception_and_a_result_that_is_not_json_are_permanent() -> None:
    again = ran(60, 70, attempt=2)
    for steps, outcome in (([{"fail": "unknown"}], "failed"),
                           ([{"return_unserialisable": True}], "ok")):
        assert says(check, submit(steps=steps), born(1), ran(20, 30, outcome=outcome),
                    again)["RETRY-08"] == "violated 2"


def test_a_permanent_failure_whose_holder_died_before_recording_it_is_executed_again() -> None:
    assert says(check, PERMANENT, born(1, 2), FAILED, killed(1, 31),
                ran(1300, 1310, attempt=2, by=2, outcome="failed"), dead(attempt=2))[
        "RETRY-04"] == "holds 2"

"""nothing_lost: what is accepted stays known, is executed, and comes to an end."""

from __future__ import annotations

import pytest
from dtq_conformance.checkers.nothing_lost import check
from dtq_conformance.history import Effect

from tests.conformance.histories import (
    LATE,
    Part,
    T,
    absent,
    accuses,
    born,
    dead,
    end,
    fault,
    killed,
    look,
    ran,
    says,
    stall,
    start,
    submit,
)

TWICE_KILLED = [submit(), born(1, 2, 3), start(100), killed(1, 200),
                start(1300, attempt=2, by=2), killed(2, 1400)]


def test_a_task_that_was_executed_and_succeeded_is_not_lost() -> None:
    assert says(check, submit(), born(1), ran(20, 30), look()) == {
        "TASK-01": "holds 1", "DLV-01": "holds 1", "DLV-02": "holds 1"}


def test_an_accepted_task_that_is_not_known_later_is_lost() -> None:
    story = [submit(), born(1), ran(20, 30), absent()]
    assert says(check, *story) == {"TASK-01": "violated 1", "DLV-01": "violated 1"}
    assert accuses(check, "DLV-01", *story) == (
        f"Task {T} was accepted at 10 ms, was started once (attempt 1 by worker-1 (pid 101), "
        "ended ok at 30 ms) and never again: the target does not know it any more at 60 000 ms, "
        "although attempt 1 had ended well.")


def test_a_task_is_shown_with_the_values_it_was_submitted_with() -> None:
    good = [submit(priority=9), born(1), ran(20, 30), look(priority=9)]
    bad = [submit(priority=9), born(1), ran(20, 30), look(priority=0)]
    assert says(check, *good)["TASK-01"] == "holds 1"
    assert says(check, *bad)["TASK-01"] == "violated 1"
    assert "priority 9 and was shown with 0" in accuses(check, "TASK-01", *bad)


def test_a_task_that_stays_unfinished_is_lost_only_after_the_recovery_time() -> None:
    def seen(at: int) -> dict[str, str]:
        return says(check, submit(), born(1), look(status="queued", at=at))

    assert seen(LATE) == {"TASK-01": "holds 1", "DLV-01": "violated 1"}
    assert seen(900) == {"TASK-01": "holds 1", "DLV-01": "unknown 1"}


def test_a_task_is_not_lost_while_no_worker_is_there() -> None:
    assert says(check, submit(), born(1), killed(1, 5), look(status="queued")) == {
        "TASK-01": "holds 1", "DLV-01": "unknown 1", "DUR-01": "unknown 1"}


def test_a_machine_that_stood_still_most_of_the_time_proves_no_loss() -> None:
    def stalled(to_ms: int) -> str:
        return says(check, submit(), born(1), look(status="queued"), stall(100, to_ms))["DLV-01"]

    assert (stalled(LATE - 100), stalled(10_000)) == ("unknown 1", "violated 1")


def test_a_task_without_a_look_is_unknown() -> None:
    assert says(check, submit(), born(1), ran(20, 30)) == {
        "TASK-01": "unknown 0", "DLV-01": "unknown 0"}


def test_a_submission_without_an_answer_counts_once_it_was_seen() -> None:
    lost_reply = submit(outcome="unknown")
    assert says(check, lost_reply, born(1), absent()) == {}
    assert says(check, lost_reply, born(1), look(status="queued")) == {"DLV-01": "violated 1"}
    assert says(check, lost_reply, born(1), ran(20, 30), absent()) == {"DLV-01": "violated 1"}
    assert says(check, lost_reply, born(1), ran(20, 30), look()) == {
        "DLV-01": "holds 1", "DLV-02": "holds 1"}


def test_a_task_that_failed_by_its_handler_was_executed() -> None:
    steps = [{"fail": "permanent"}]
    good = [submit(steps=steps), born(1), ran(20, 30, outcome="failed"), dead()]
    bad = [submit(steps=steps), born(1), dead()]
    assert says(check, *good) == {"TASK-01": "holds 1", "DLV-01": "holds 1"}
    assert says(check, *bad) == {"TASK-01": "holds 1", "DLV-01": "violated 1"}
    assert "without being executed" in accuses(check, "DLV-01", *bad)


def test_success_needs_an_execution_that_ended_well() -> None:
    for witnessed in ([], ran(20, 30, outcome="failed"), [start(20)]):
        story = [submit(), born(1), witnessed, look()]
        assert says(check, *story)["DLV-02"] == "violated 1"
        assert T in accuses(check, "DLV-02", *story)


def test_success_needs_a_good_end_of_the_attempt_that_the_result_names() -> None:
    zombie = [start(20), start(1300, attempt=2, by=2), end(1500)]
    assert says(check, submit(), born(1, 2), zombie, end(1400, attempt=2, by=2),
                look(attempt=2, by=2))["DLV-02"] == "holds 1"
    assert says(check, submit(), born(1, 2), zombie,
                look(attempt=2, by=2))["DLV-02"] == "violated 1"


def test_a_task_whose_holder_died_is_executed_again() -> None:
    once = [submit(), born(1, 2), start(100), killed(1, 200)]
    assert says(check, *once, ran(1300, 1400, attempt=2, by=2), look(attempt=2, by=2)) == {
        "TASK-01": "holds 1", "DLV-01": "holds 1", "DUR-01": "holds 1", "DLV-02": "holds 1",
        "DLV-03": "holds 1"}
    assert says(check, *once, look(status="running")) == {
        "TASK-01": "holds 1", "DLV-01": "violated 1", "DUR-01": "violated 1",
        "DLV-03": "violated 1"}
    assert says(check, *once, look(status="running", at=300))["DLV-03"] == "unknown 1"
    assert says(check, *once) == {
        "TASK-01": "unknown 0", "DLV-01": "unknown 0", "DUR-01": "unknown 0",
        "DLV-03": "unknown 0"}


def test_a_superseded_holder_that_started_late_and_died_needs_no_further_execution() -> None:
    late = [submit(), born(1, 2), ran(100, 500, attempt=2, by=2), start(200), killed(1, 300)]
    assert says(check, *late, look(attempt=2, by=2))["DLV-03"] == "holds 1"


def test_a_task_whose_holder_died_may_end_without_a_further_execution() -> None:
    once = [submit(), born(1, 2), start(100), killed(1, 200)]
    assert says(check, *once, look(status="cancelled"))["DLV-03"] == "holds 1"
    assert says(check, *once, dead(error_class="WorkerLost", attempt=5))["DLV-03"] == "holds 1"
    assert says(check, *once, dead(error_class="WorkerLost", attempt=1))["DLV-03"] == "violated 1"


def test_a_task_that_lost_two_holders_is_executed_a_third_time() -> None:
    assert says(check, *TWICE_KILLED, ran(2500, 2600, attempt=3, by=3),
                look(attempt=3, by=3)) == {
        "TASK-01": "holds 1", "DLV-01": "holds 1", "DUR-01": "holds 1", "DLV-02": "holds 1",
        "DLV-03": "holds 2", "DLV-04": "holds 1"}
    assert says(check, *TWICE_KILLED, look(status="running", attempt=2)) == {
        "TASK-01": "holds 1", "DLV-01": "violated 1", "DUR-01": "violated 1",
        "DLV-03": "violated 2", "DLV-04": "violated 1"}


def test_the_story_of_a_lost_task_names_both_kills_and_the_missing_execution() -> None:
    assert accuses(check, "DLV-04", *TWICE_KILLED, look(status="running", attempt=2)) == (
        f"Task {T} was accepted at 10 ms, was started 2 times (attempt 1 by worker-1 (pid 101), "
        "which was killed at 200 ms; attempt 2 by worker-2 (pid 102), which was killed at "
        "1 400 ms) and never again: it is still 'running' at 60 000 ms, no execution of attempt 3 "
        "followed.")


def test_a_task_that_lost_its_last_attempt_may_be_dead_lettered() -> None:
    story = [submit(max_attempts=2), *TWICE_KILLED[1:]]
    letter = dead(error_class="WorkerLost", attempt=2, max_attempts=2)
    running = look(status="running", attempt=2, max_attempts=2)
    assert says(check, *story, letter)["DLV-04"] == "holds 1"
    assert says(check, *story, running)["DLV-04"] == "violated 1"


def test_a_task_that_is_gone_is_lost_however_early_it_is_looked_at() -> None:
    story = [submit(), born(1, 2), start(100), killed(1, 200), absent(at=300)]
    assert says(check, *story) == {
        "TASK-01": "violated 1", "DLV-01": "violated 1", "DUR-01": "violated 1",
        "DLV-03": "violated 1"}


def test_a_holder_that_died_after_the_last_look_is_unknown() -> None:
    assert says(check, submit(), born(1, 2), start(100), look(status="running", at=150),
                killed(1, 200))["DLV-03"] == "unknown 0"


def test_a_dead_letter_that_the_handler_need_not_have_caused_needs_no_execution() -> None:
    assert says(check, submit(), born(1), dead(error_class="BadSignature")) == {
        "TASK-01": "holds 1", "DLV-01": "holds 1"}


HUNG = [submit(timeout_ms=500), submit("e" * 32), born(1, 2), start(100),
        ran(150, 160, "e" * 32, by=2), look("e" * 32, by=2)]
"""A handler that never returns, beside a worker that has worked and is idle."""


def test_a_handler_that_hangs_loses_its_task_to_a_worker_that_has_room() -> None:
    assert says(check, *HUNG, ran(3000, 3100, attempt=2, by=2), look(attempt=2, by=2),
                killed(1, 9000))["DLV-30"] == "holds 1"
    held = [*HUNG, look(status="running", at=4500)]
    assert says(check, *held)["DLV-30"] == "violated 1"
    assert "whose handler hung, and was still 'running' there at 4 500 ms" in accuses(
        check, "DLV-30", *held)


def test_a_handler_that_hangs_is_judged_when_its_last_renewal_is_surely_over() -> None:
    assert "DLV-30" not in says(check, *HUNG, look(status="running", at=3500))
    assert "DLV-30" not in says(check, *HUNG, look(status="running", at=4500), stall(500, 1500))
    busy = [*HUNG, start(200, "e" * 32, attempt=2, by=2), look(status="running", at=4500)]
    assert "DLV-30" not in says(check, *busy)


def test_what_is_lost_is_lost_to_the_profile_of_what_befell() -> None:
    """DUR-01 is about runs in which workers were killed, DUR-02 about those of the broker, WORK-22
    about those in which it was in trouble of any sort and kept its data."""
    lost = [submit(), born(1), look(status="queued")]
    restart = fault("broker_restarted", 100, 200)
    assert "DUR-02" not in says(check, *lost)
    assert says(check, *lost, restart)["DUR-02"] == "violated 1"
    assert says(check, submit(), born(1), restart, ran(300, 400), look())["DUR-02"] == "holds 1"


@pytest.mark.parametrize(("effect", "clauses"), [
    ("scripts_flushed", {"WORK-16", "WORK-22"}), ("group_dropped", {"WORK-17", "WORK-22"}),
    ("broker_restarted", {"DUR-02", "WORK-16", "WORK-22"}), ("broker_away", {"WORK-22"}),
    ("out_of_memory", {"WORK-22"}),
    ("delayed", set())])
def test_what_is_lost_in_the_brokers_trouble_is_lost_for_its_promises(
        effect: Effect, clauses: set[str]) -> None:
    about = {"DUR-02", "WORK-16", "WORK-17", "WORK-22"}
    trouble = fault(effect, 100, 200)
    bad = says(check, submit(), born(1), trouble, look(status="queued"))
    good = says(check, submit(), born(1), trouble, ran(300, 400), look())
    assert {each: bad[each] for each in about & set(bad)} == dict.fromkeys(clauses, "violated 1")
    assert {each: good[each] for each in about & set(good)} == dict.fromkeys(clauses, "holds 1")


def test_what_ended_well_is_not_failed_for_want_of_a_script() -> None:
    def told(*parts: Part, error_class: str = "NoScriptError", **fields: int) -> dict[str, str]:
        return says(check, submit(**fields), born(1), *parts, dead(error_class=error_class))

    flushed = fault("scripts_flushed", 100, 200)
    assert told(flushed, ran(50, 150))["WORK-16"] == "violated 1"
    assert "WORK-16" not in told(ran(50, 150))
    assert told(flushed, ran(50, 150), error_class="WorkerLost")["WORK-16"] == "holds 1"
    assert told(flushed, ran(50, 1150), timeout_ms=1000)["WORK-16"] == "holds 1"
    assert says(check, submit(steps=[{"fail": "permanent"}]), born(1), flushed,
                ran(50, 150, outcome="failed"), dead())["WORK-16"] == "holds 1"
    assert accuses(check, "WORK-16", submit(), born(1), flushed, ran(50, 150),
                   dead(error_class="NoScriptError")) == (
        f"Task {T} ended ok at 150 ms (attempt 1 by worker-1 (pid 101)), and is reported as "
        "dead_lettered by NoScriptError at 60 000 ms, in a run in which scripts were lost.")

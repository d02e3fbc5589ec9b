"""nothing_invented: what is executed was submitted; what is refused leaves nothing."""

from __future__ import annotations

from dtq_conformance.checkers.nothing_invented import check
from dtq_conformance.operation import Outcome

from tests.conformance.histories import T, U, absent, accuses, look, ran, says, submit

NAMED = {"code": "INVALID_TASK", "message": "priority is 12, not 0 to 9"}


def test_an_executed_task_was_submitted() -> None:
    assert says(check, submit(), ran(20, 30)) == {"DLV-09": "holds 1"}
    assert says(check, submit(), ran(20, 30), ran(20, 30, U)) == {"DLV-09": "violated 2"}


def test_the_accusation_names_the_task_and_who_executed_it() -> None:
    assert accuses(check, "DLV-09", submit(), ran(20, 30, U, by=2)) == (
        f"Task {U} (label '') was executed at 20 ms (attempt 1 by worker-2 (pid 102)), but "
        "nobody had submitted it.")


def test_a_submission_without_an_answer_may_be_executed_and_a_refused_one_may_not() -> None:
    assert says(check, submit(outcome="unknown"), ran(20, 30)) == {"DLV-09": "holds 1"}
    assert says(check, submit(outcome="refused"), ran(20, 30)) == {"DLV-09": "violated 1"}
    assert says(check, submit(outcome="refused"), submit(at=12), ran(20, 30)) == {
        "DLV-09": "holds 1"}


def test_a_submission_outside_the_limits_is_refused_with_the_name_of_the_field() -> None:
    def answered(outcome: Outcome, **answer: str) -> dict[str, str]:
        return says(check, submit(outcome=outcome, priority=12, answer=answer))

    assert answered("refused", **NAMED) == {"TASK-03": "holds 1"}
    assert answered("refused", code="INVALID_TASK", message="no") == {"TASK-03": "violated 1"}
    assert answered("refused", message=NAMED["message"]) == {"TASK-03": "violated 1"}
    assert answered("ok") == {"TASK-03": "violated 1"}
    assert answered("unknown") == {"TASK-03": "unknown 0"}


def test_each_field_has_its_limits() -> None:
    outside = (submit(priority=-1), submit(priority=10), submit(max_attempts=0),
               submit(max_attempts=11), submit(timeout_ms=0), submit(timeout_ms=3_600_001),
               submit("not-an-id"))
    within = (submit(priority=0), submit(priority=9), submit(max_attempts=1),
              submit(max_attempts=10), submit(timeout_ms=3_600_000))
    assert [says(check, one) for one in outside] == [{"TASK-03": "violated 1"}] * len(outside)
    assert [says(check, one) for one in within] == [{}] * len(within)


def test_nothing_is_kept_of_a_refused_submission() -> None:
    refused = submit(outcome="refused", priority=12, answer=NAMED)
    assert says(check, refused, absent()) == {"TASK-03": "holds 1"}
    assert says(check, refused, look(T, "queued")) == {"TASK-03": "violated 1"}
    assert says(check, refused, submit(at=20), look(T, "queued")) == {"TASK-03": "holds 1"}

"""requeue_begins_anew: it begins with attempt 1, and only what has a dead letter is requeued."""

from __future__ import annotations

from dtq_conformance.checkers.requeue_begins_anew import check
from dtq_conformance.operation import Outcome

from tests.conformance.histories import T, asked, born, dead, fault, gone, look, ran, says, submit

OLD = f"{T}~1"
REQUEUED = [submit(OLD), born(1), dead(OLD, at=50), asked("requeue", OLD, at=100),
            submit(T, at=100)]


def test_a_requeued_task_begins_with_attempt_one() -> None:
    assert says(check, *REQUEUED, ran(150, 200)) == {"DLQ-06": "holds 1", "DLQ-08": "holds 1"}
    assert says(check, *REQUEUED, ran(150, 200, attempt=2))["DLQ-06"] == "violated 1"


def test_what_has_no_dead_letter_is_not_requeued() -> None:
    refused = asked("requeue", T, at=100, outcome="refused", code="NOT_REQUEUEABLE")
    assert says(check, submit(), look(at=50), refused) == {"DLQ-08": "holds 1"}
    done = [submit(OLD), look(OLD, at=50), asked("requeue", OLD, at=100), submit(T, at=100)]
    assert says(check, *done)["DLQ-08"] == "violated 1"


def test_what_was_discarded_is_not_requeued() -> None:
    discarded = asked("discard", OLD, at=70)
    assert says(check, *REQUEUED, discarded)["DLQ-08"] == "violated 2"
    assert says(check, submit(), dead(at=50), asked("discard", T, at=70), dead())[
        "DLQ-08"] == "holds 1"


def test_only_a_dead_letter_is_discarded() -> None:
    assert says(check, submit(), look(at=50), asked("discard", T, at=70), look())[
        "DLQ-08"] == "violated 1"


def test_attempt_1_may_be_lost_before_it_began() -> None:
    again = [asked("requeue", f"{T}~1", at=1000), submit(at=1000), born(1, 2)]
    assert says(check, *again, ran(2300, 2310, attempt=2, by=2))["DLQ-06"] == "violated 1"
    assert "DLQ-06" not in says(check, *again, ran(2300, 2310, attempt=2, by=2),
                                gone(1, 1100, signal=9))


def test_an_orphans_letter_is_not_requeued() -> None:
    orphan = fault("forged", 20, 40, task_id=T, entries=0)

    def told(outcome: Outcome, **answer: str) -> str | None:
        return says(check, orphan, asked("requeue", T, at=100, outcome=outcome,
                                         **answer)).get("DLQ-12")

    assert told("refused", code="TASK_NOT_FOUND") == "holds 1"
    assert told("refused", code="NOT_REQUEUEABLE") == "violated 1"
    assert told("ok") == "violated 1"
    assert told("unknown") is None
    assert "DLQ-12" not in says(check, orphan, look(at=50), asked("requeue", T, at=100))
    left = fault("forged", 20, 40, task_id=T, entries=1)
    assert "DLQ-12" not in says(check, left, asked("requeue", T, at=100))

"""one_task_per_key: a key has one task, and each other submission of it is answered with that."""

from __future__ import annotations

from typing import Any

from dtq_conformance.checkers.one_task_per_key import check
from dtq_conformance.operation import Operation, Outcome

from tests.conformance.histories import T, U, V, asked, dead, look, ran, says, submit

DAY_MS = 86_400_000


def keyed(task_id: str, at: int, outcome: Outcome = "ok", /, **answer: Any) -> Operation:
    return submit(task_id, at, outcome, idempotency_key="k", answer=answer)


def refused(task_id: str, at: int, owner: str) -> Operation:
    return keyed(task_id, at, "refused", code="IDEMPOTENCY_IN_PROGRESS", task_id=owner)


def duplicate(task_id: str, at: int, owner: str) -> Operation:
    return keyed(task_id, at, task_id=owner, duplicate=True)


def test_the_key_of_an_unfinished_task_is_refused_with_its_id() -> None:
    assert says(check, keyed(T, 10), refused(U, 20, T), look(at=50)) == {
        "IDEM-03": "holds 1", "IDEM-05": "holds 1"}
    assert says(check, keyed(T, 10), refused(U, 20, U))["IDEM-03"] == "violated 1"


def test_two_tasks_of_a_key_are_one_too_many() -> None:
    assert says(check, keyed(T, 10), keyed(U, 20))["IDEM-05"] == "violated 1"
    assert says(check, keyed(T, 10), look(at=50), keyed(U, 60))["IDEM-05"] == "violated 1"
    forgotten = keyed(U, 60 + DAY_MS)
    assert says(check, keyed(T, 10), look(at=50), forgotten)["IDEM-05"] == "holds 1"
    assert says(check, keyed(T, 10), submit(U, 20))["IDEM-05"] == "holds 1"


def test_a_submission_without_an_answer_counts_once_it_is_executed() -> None:
    unanswered = keyed(U, 20, "unknown")
    assert says(check, keyed(T, 10), unanswered)["IDEM-05"] == "holds 1"
    assert says(check, keyed(T, 10), unanswered, ran(30, 40, U))["IDEM-05"] == "violated 1"


def test_the_key_of_a_finished_task_is_answered_with_that_task() -> None:
    assert says(check, keyed(T, 10), look(at=50), duplicate(U, 60, T))["IDEM-04"] == "holds 1"
    assert says(check, keyed(T, 10), look(at=50), duplicate(U, 60, V))["IDEM-04"] == "violated 1"
    assert says(check, keyed(T, 10), look(at=50), refused(U, 60, T))["IDEM-04"] == "violated 0"
    unfinished = look(status="running", at=90)
    assert says(check, keyed(T, 10), duplicate(U, 60, T), unfinished)["IDEM-03"] == "violated 0"


def test_a_submission_sent_again_is_answered_as_the_first_time() -> None:
    assert says(check, keyed(T, 10), keyed(T, 20))["IDEM-10"] == "holds 1"
    assert says(check, keyed(T, 10), refused(T, 20, T))["IDEM-10"] == "violated 1"
    assert says(check, keyed(T, 10), duplicate(T, 20, T))["IDEM-10"] == "violated 1"


def test_a_requeue_makes_no_second_unfinished_task_of_a_key() -> None:
    first_life, second_life = f"{T}~1", T
    forgotten = DAY_MS + 100
    parts = [keyed(first_life, 10), dead(first_life, at=50), keyed(U, forgotten),
             asked("requeue", first_life, at=forgotten + 100),
             keyed(second_life, forgotten + 100)]
    assert says(check, *parts)["IDEM-15"] == "violated 1"
    over = look(U, at=forgotten + 50)
    assert says(check, *parts, over)["IDEM-15"] == "violated 1"
    alone = [keyed(first_life, 10), dead(first_life, at=50),
             asked("requeue", first_life, at=100), keyed(second_life, 100)]
    assert says(check, *alone)["IDEM-15"] == "holds 1"


def test_a_requeue_that_was_refused_because_of_the_key_is_counted() -> None:
    refused = asked("requeue", T, at=100, outcome="refused", code="IDEMPOTENCY_IN_PROGRESS")
    assert says(check, refused)["IDEM-15"] == "holds 1"

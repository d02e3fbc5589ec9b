"""A requeued task lives again: each of its lives is judged as a task of its own."""

from __future__ import annotations

from dtq_conformance import lives
from dtq_conformance.history import History
from dtq_conformance.operation import Outcome

from tests.conformance.histories import T, U, asked, dead, history, look, ran, start, submit

OLD = f"{T}~1"


def told_apart(*parts: object) -> History:
    return lives.apart(history(*parts))  # type: ignore[arg-type]


def test_a_history_without_a_requeue_is_left_as_it_is() -> None:
    before = history(submit(), ran(20, 30), look())
    assert lives.apart(before) is before
    refused = history(submit(), asked("requeue", T, at=100, outcome="refused"))
    assert lives.apart(refused) is refused


def test_the_last_life_keeps_the_tasks_id_and_the_earlier_ones_are_numbered() -> None:
    found = told_apart(submit(delay_ms=500), ran(20, 30, outcome="failed"), dead(at=50),
                       asked("requeue", T, at=100), ran(150, 200), look(), submit(U))
    assert set(found.submissions) == {OLD, T, U}
    assert [e.start_ns < e.end_ns for e in found.executions[OLD] if e.end_ns] == [True]
    assert found.looks[OLD][0].answer["status"] == "dead_lettered"
    assert found.looks[T][-1].answer["status"] == "succeeded"
    assert found.submissions[T][0].request["delay_ms"] == 0
    assert found.accepted == [OLD, U, T] or set(found.accepted) == {OLD, T, U}


def test_a_life_was_submitted_with_the_answer_that_its_task_was() -> None:
    """A submission that is sent again in a later life is answered as the first time."""
    found = told_apart(submit(answer={"task_id": T}), dead(at=50), asked("requeue", T, at=100),
                       submit(at=200, answer={"task_id": T}), look())
    assert [o.answer for o in found.submissions[T]] == [{"task_id": T}, {"task_id": T}]


def test_an_execution_belongs_to_the_life_in_which_it_began() -> None:
    zombie = ran(20, 500, outcome="failed", by=1)
    found = told_apart(submit(), zombie, dead(at=50), asked("requeue", T, at=100),
                       ran(150, 200, by=2), look())
    assert [e.pid for e in found.executions[OLD]] == [101]
    assert [e.pid for e in found.executions[T]] == [102]


def test_a_look_at_two_lives_at_once_shows_nobody_which_it_saw() -> None:
    requeue = asked("requeue", T, at=100)
    both = look(status="queued", at=100)
    found = told_apart(submit(), dead(at=50), requeue, both, look())
    assert [o.answer["status"] for o in found.looks[T]] == ["succeeded"]


def test_a_requeue_without_an_answer_took_place_if_the_task_lived_on() -> None:
    unknown: Outcome = "unknown"
    requeue = asked("requeue", T, at=100, outcome=unknown)
    assert OLD in told_apart(submit(), dead(at=50), requeue, look()).submissions
    assert OLD not in told_apart(submit(), dead(at=50), requeue, dead()).submissions


def test_a_requeue_of_what_nobody_submitted_begins_no_life() -> None:
    told = history(asked("requeue", T, at=100))
    assert lives.apart(told) is told


def test_names_of_lives() -> None:
    assert lives.is_past(OLD)
    assert not lives.is_past(T)
    assert lives.same_task(OLD, T)
    assert not lives.same_task(OLD, U)
    found = told_apart(submit(), start(20), dead(at=50), asked("requeue", T, at=100), look())
    assert lives.was_requeued(found, T)
    assert not lives.was_requeued(found, U)

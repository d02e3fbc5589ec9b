"""depth_is_exact: a queue takes as many unfinished tasks as its limit says."""

from __future__ import annotations

import msgspec
from dtq_conformance.checkers.depth_is_exact import check
from dtq_conformance.operation import Operation

from tests.conformance.histories import (
    LATE,
    Part,
    T,
    U,
    V,
    absent,
    asked,
    history,
    look,
    ns,
    ran,
    submit,
)


def verdicts(*parts: Part, limit: str = "2") -> dict[str, str]:
    found = check(history(*parts, settings={"DTQ_MAX_QUEUE_DEPTH": limit}))
    return {each.clause: f"{each.status} {each.judged}" for each in found
            if each.judged or each.findings}


def full(task_id: str, at: int) -> Operation:
    return submit(task_id, at, "refused", answer={"code": "QUEUE_FULL", "message": "full"})


TWO = [submit(T, 10), submit(U, 20)]


def test_a_full_queue_refuses_and_keeps_nothing() -> None:
    assert verdicts(TWO, full(V, 30), absent(V)) == {"BACK-01": "holds 1", "BACK-02": "holds 3"}


def test_one_too_many_is_a_violation() -> None:
    assert verdicts(TWO, submit(V, 30))["BACK-02"] == "violated 3"
    assert verdicts(TWO, ran(22, 25), look(at=28), submit(V, 30))["BACK-02"] == "holds 3"
    running = look(status="running", at=40)
    assert verdicts(TWO, ran(22, 50), running, submit(V, 30))["BACK-02"] == "violated 3"
    cancelled = asked("cancel", T, at=25)
    assert verdicts(TWO, cancelled, submit(V, 30))["BACK-02"] == "holds 3"


def test_of_three_at_once_one_is_too_many_for_two() -> None:
    at_once = [msgspec.structs.replace(submit(task_id, 30 + place), asked_ns=ns(25))
               for place, task_id in enumerate((T, U, V))]
    assert verdicts(at_once)["BACK-02"] == "violated 3"
    assert verdicts(at_once, limit="3")["BACK-02"] == "holds 3"


def test_a_refusal_needs_a_full_queue() -> None:
    assert verdicts(submit(T, 10), full(V, 30))["BACK-02"] == "violated 2"
    over = [ran(22, 25), look(at=28)]
    assert verdicts(TWO, over, full(V, 30))["BACK-02"] == "violated 3"
    assert verdicts(TWO, ran(22, 25), full(V, 26))["BACK-02"] == "holds 3"


def test_what_was_refused_is_not_there() -> None:
    assert verdicts(TWO, full(V, 30), look(V, at=LATE))["BACK-01"] == "violated 1"
    assert verdicts(TWO, full(V, 30), ran(40, 50, V), absent(V))["BACK-01"] == "violated 1"
    assert "BACK-01" not in verdicts(TWO, full(V, 30), submit(V, 60), look(V, at=LATE))


def test_a_requeue_is_not_refused_for_a_full_queue() -> None:
    assert verdicts(TWO, asked("requeue", T, at=30))["BACK-03"] == "holds 1"
    refused = asked("requeue", T, at=30, outcome="refused", code="QUEUE_FULL")
    assert verdicts(TWO, refused)["BACK-03"] == "violated 1"


def test_without_a_limit_of_its_own_nothing_is_judged() -> None:
    assert {each.status for each in check(history(TWO))} == {"unknown"}

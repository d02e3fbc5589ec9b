"""kept_through_broker_trouble: who executes a task keeps it through a lost group or a restart."""

from __future__ import annotations

import pytest
from dtq_conformance.checkers.kept_through_broker_trouble import check
from dtq_conformance.history import Effect

from tests.conformance.histories import (
    T,
    accuses,
    born,
    dead,
    fault,
    killed,
    look,
    ran,
    says,
    stall,
    submit,
)

EACH = pytest.mark.parametrize(("effect", "clause"), [
    ("group_dropped", "WORK-18"), ("broker_restarted", "WORK-19")])

HELD = [submit(), born(1, 2), ran(100, 3000)]
BESIDE = ran(1500, 1600, attempt=2, by=2)


@EACH
def test_a_task_that_stays_with_its_holder_is_kept(effect: Effect, clause: str) -> None:
    assert says(check, *HELD, fault(effect, 500, 1200), look()) == {clause: "holds 1"}


@EACH
def test_a_start_beside_the_holder_is_a_violation(effect: Effect, clause: str) -> None:
    assert says(check, *HELD, fault(effect, 500, 1200), BESIDE) == {clause: "violated 1"}
    assert accuses(check, clause, *HELD, fault(effect, 500, 1200), BESIDE).endswith(
        "and it was started beside that as attempt 2 by worker-2 (pid 102) at 1 500 ms.")


@EACH
def test_an_end_without_the_holder_is_a_violation(effect: Effect, clause: str) -> None:
    ended = dead(error_class="WorkerLost", at=1400)
    assert says(check, *HELD, fault(effect, 500, 1200), ended) == {clause: "violated 1"}
    assert f"Task {T} was executed" in accuses(
        check, clause, *HELD, fault(effect, 500, 1200), ended)


@EACH
def test_a_holder_that_something_else_befell_may_lose_its_task(
        effect: Effect, clause: str) -> None:
    assert says(check, submit(), born(1, 2), ran(100, 3000), fault(effect, 500, 1200), BESIDE,
                fault("stopped", 150, 1300, worker=1, number=1)) == {}
    assert says(check, *HELD, fault(effect, 500, 1200), BESIDE, killed(1, 1300)) == {}


@EACH
def test_only_a_long_stall_of_the_machine_makes_it_unknown(effect: Effect, clause: str) -> None:
    assert says(check, *HELD, fault(effect, 500, 1200), BESIDE, stall(200, 1300)) == {
        clause: "unknown 1"}


def test_who_had_ended_by_then_is_not_judged() -> None:
    over = [submit(), born(1, 2), ran(100, 800)]
    assert says(check, *over, fault("broker_restarted", 500, 1200)) == {}
    assert says(check, *over, fault("group_dropped", 500, 1200)) == {"WORK-18": "holds 1"}
    assert says(check, *over, fault("group_dropped", 900, 1200)) == {}

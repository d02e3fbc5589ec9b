"""attempts_accounted_for: an attempt that was spent was executed, or lost with a worker."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_conformance.checkers.attempts_accounted_for import check

from tests.conformance.histories import (
    T,
    accuses,
    born,
    dead,
    fault,
    gone,
    killed,
    look,
    ran,
    says,
    stall,
    start,
    submit,
)

SECOND = [submit(), born(1, 2), ran(1500, 1600, attempt=2, by=2), look(attempt=2, by=2)]
"""The first execution of a task is its second attempt."""

LOST = [submit(max_attempts=1), born(1, 2), dead(error_class="WorkerLost", max_attempts=1, at=2000)]
"""A task that was put away as lost and never executed."""

HELD = [submit(max_attempts=1), born(1, 2), ran(100, 2000),
        dead(error_class="WorkerLost", max_attempts=1, at=1500)]
"""A task that was put away as lost while it was executed."""

TAKE = fault("reply_lost", 50, 60, worker=1, of="take", task_id=T)


def test_an_attempt_that_was_executed_is_accounted_for() -> None:
    assert says(check, submit(), born(1), ran(100, 200, outcome="failed"),
                ran(400, 500, attempt=2)) == {"DLV-25": "holds 2"}


def test_a_number_that_no_execution_has_needs_a_lost_worker() -> None:
    assert says(check, *SECOND) == {"DLV-25": "violated 2"}
    assert accuses(check, "DLV-25", *SECOND) == (
        f"Attempt 1 of task {T} was spent by 1 500 ms and no execution has this number, although "
        "no worker was lost that could have held it.")
    assert says(check, *LOST) == {"DLV-25": "violated 1"}


@pytest.mark.parametrize("loss", [
    killed(1, 300), gone(1, 300, code=1), fault("stopped", 100, 1200, worker=1),
    fault("cut", 100, 1200, worker=1), fault("broker_away", 100, 200)], ids=repr)
def test_any_loss_of_a_worker_meanwhile_explains_it(loss: Any) -> None:
    assert says(check, *SECOND, loss) == {"DLV-25": "holds 2"}
    assert says(check, *LOST, loss) == {"DLV-25": "holds 1"}


@pytest.mark.parametrize("harmless", [
    fault("stopped", 100, 300, worker=1), fault("delayed", 100, 1400, worker=1), TAKE,
    fault("group_dropped", 100, 200), fault("broker_restarted", 100, 1400),
    killed(1, 1700)], ids=repr)
def test_what_takes_no_lease_explains_nothing(harmless: Any) -> None:
    assert says(check, *SECOND, harmless)["DLV-25"] == "violated 2"


def test_only_a_long_stall_of_the_machine_makes_it_unknown() -> None:
    assert says(check, *SECOND, stall(100, 1200)) == {"DLV-25": "unknown 2"}
    assert says(check, *SECOND, stall(100, 200)) == {"DLV-25": "violated 2"}


def test_a_worker_that_stopped_in_good_order_has_taken_nothing_with_it() -> None:
    stopped = gone(1, 400, code=0, asked="terminate")
    assert says(check, *SECOND, stopped) == {"DLV-25": "holds 2", "DLV-27": "violated 1"}
    assert "a worker stopped in good order at 400 ms" in accuses(
        check, "DLV-27", *SECOND, stopped)
    assert says(check, submit(), born(1, 2), stopped, ran(600, 700, by=2)) == {
        "DLV-25": "holds 1", "DLV-27": "holds 1"}
    left_open = [submit(), born(1, 2), start(50, "d" * 32), stopped,
                 ran(1500, 1600, attempt=2, by=2)]
    assert says(check, *left_open) == {"DLV-25": "holds 2", "DLV-27": "holds 1"}


def test_who_is_told_to_be_lost_was_lost() -> None:
    assert says(check, *HELD) == {"DLV-25": "holds 1", "DLV-31": "violated 1"}
    assert "although nothing had befallen it" in accuses(check, "DLV-31", *HELD)
    assert says(check, *HELD, fault("stopped", 150, 1200, worker=1))["DLV-31"] == "holds 1"
    assert says(check, *HELD, stall(150, 1200))["DLV-31"] == "unknown 1"


def test_a_worker_that_never_saw_a_task_does_not_keep_it() -> None:
    accepted = [submit(), born(1, 2), TAKE]
    assert says(check, *accepted, ran(100, 200)) == {"DLV-25": "holds 1", "DLV-29": "holds 1"}
    kept = [*accepted, look(status="running", at=9000)]
    assert says(check, *kept) == {"DLV-29": "violated 1"}
    assert accuses(check, "DLV-29", *kept) == (
        f"The reply by which task {T} was handed over was lost at 50 ms; it is still 'running' at "
        "9 000 ms and was never started.")
    assert says(check, *accepted, look(status="running", at=1000)) == {"DLV-29": "unknown 0"}
    assert says(check, *accepted) == {"DLV-29": "unknown 0"}

"""what_was_answered_survives: a restart undoes nothing, a power failure only what is young."""

from __future__ import annotations

import pytest
from dtq_conformance import losses
from dtq_conformance.checkers.what_was_answered_survives import check
from dtq_conformance.history import History
from dtq_conformance.snapshot import Alike, Snapshot

from tests.conformance.histories import (
    LATE,
    Part,
    T,
    U,
    absent,
    accuses,
    asked,
    born,
    dead,
    fault,
    history,
    look,
    ns,
    ran,
    says,
    submit,
)
from tests.conformance.test_losses import power_lost

RESTART = fault("broker_restarted", 1000, 1500)
ACCEPTED = [born(1), submit(T, 10)]


@pytest.mark.parametrize(("before", "after"), [
    ([], look()), ([look(at=500)], look()), ([look(status="running", at=500)], look()),
    ([look(status="running", at=500)], look(status="queued")),
    ([dead(at=500)], dead()), ([asked("cancel", T, at=500, said="requested")], look()),
    ([asked("cancel", T, at=500, said="cancelled")], look(status="cancelled")),
    ([absent(at=5)], look())])
def test_what_is_still_true_holds(before: list[Part], after: Part) -> None:
    assert says(check, *ACCEPTED, *before, RESTART, after)["DUR-03"].startswith("holds")


@pytest.mark.parametrize(("before", "after", "words"), [
    ([], absent(), f"The submission of task {T} was answered with success at 10 ms; the broker was "
                   "back at 1 500 ms with its data, and it was not known any more at 60 000 ms."),
    ([look(at=500)], look(status="running"), "was seen 'succeeded' at 500 ms"),
    ([look(at=500)], look(result=7), "and its result {'attempt': 1"),
    ([dead(at=500)], dead(attempt=2), "its attempt 1 was 2"),
    ([dead(at=500)], dead(error_class="WorkerLost"), "its error_class 'PermanentError' was"),
    ([look(status="queued", at=500)], look(status="pending"), "it was 'pending'"),
    ([asked("cancel", T, at=500, said="cancelled")], look(), "it was 'succeeded'")])
def test_what_is_not_true_any_more_is_a_violation(before: list[Part], after: Part,
                                                  words: str) -> None:
    assert words in accuses(check, "DUR-03", *ACCEPTED, *before, RESTART, after)
    assert says(check, *ACCEPTED, *before, RESTART, after)["DUR-03"].startswith("violated")


def test_what_was_not_answered_or_not_looked_at_again_is_not_judged() -> None:
    assert says(check, submit(outcome="unknown"), RESTART, absent()) == {}
    assert says(check, *ACCEPTED, look(at=500), RESTART) == {}
    duplicate = submit(answer={"task_id": U, "duplicate": True})
    assert says(check, duplicate, RESTART, absent()) == {}


def after_power_loss(*parts: Part) -> History:
    return losses.apart(history(*ACCEPTED, power_lost(), *parts))


def told(seen: History) -> dict[str, str]:
    return {each.clause: f"{each.status} {each.judged}" for each in check(seen)
            if each.judged or each.findings}


def test_of_a_power_failure_only_what_is_older_than_a_second_counts() -> None:
    young = [submit(U, 1500), look(U, at=1800)]
    assert told(after_power_loss(look(at=900), young, look(), absent(U))) == {
        "DUR-04": "holds 2"}
    gone = after_power_loss(look(at=900), absent())
    assert told(gone) == {"DUR-04": "violated 2"}


def test_what_is_there_after_a_power_failure_has_to_end() -> None:
    young = [submit(U, 1500), ran(1600, 1700, U), look(at=900), look()]
    assert told(after_power_loss(young, look(U)))["DUR-05"] == "holds 1"
    assert told(after_power_loss(young, look(U, "running")))["DUR-05"] == "violated 1"
    soon = after_power_loss(young, look(U, "running", at=2600))
    assert told(soon)["DUR-05"] == "unknown 1"


@pytest.mark.parametrize(("at", "verdict"), [(LATE, "violated 1"), (800, None)])
def test_a_snapshot_of_half_a_step_counts_after_the_failure(at: int, verdict: str | None) -> None:
    half = Snapshot(at_ns=ns(at), asked_ns=ns(at) - 1000,
                    alike=[Alike(status="queued", count=1, task_ids=[T])])
    assert told(after_power_loss(look(at=900), look(), half)).get("DUR-05") == verdict

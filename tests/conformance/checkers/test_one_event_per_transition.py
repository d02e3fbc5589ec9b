"""one_event_per_transition: a task's events are a way through its states, whole and in order."""

from __future__ import annotations

import pytest
from dtq_conformance.checkers.one_event_per_transition import COPIED, LEADS, check
from dtq_conformance.exchange import Heard

from tests.conformance.exchanges import expects, heard, inspected, listened
from tests.conformance.histories import (
    LATE,
    T,
    accuses,
    born,
    dead,
    fault,
    gone,
    killed,
    look,
    ns,
    ran,
    says,
    submit,
)

QUEUED, STARTED, SUCCEEDED = (heard("TASK_QUEUED", 11), heard("TASK_STARTED", 20),
                              heard("TASK_SUCCEEDED", 31))
TASK = [submit(), ran(21, 30), look(at=40), listened()]


def test_a_task_with_an_event_for_each_transition_is_well() -> None:
    assert says(check, TASK, QUEUED, STARTED, SUCCEEDED) == {
        "EVT-01": "holds 3", "EVT-02": "holds 1", "EVT-03": "holds 1", "EVT-04": "holds 3"}


@pytest.mark.parametrize("events", [
    [], [QUEUED, STARTED], [STARTED, SUCCEEDED], [QUEUED, SUCCEEDED],
    [QUEUED, STARTED, SUCCEEDED, heard("TASK_SUCCEEDED", 32)],
    [QUEUED, heard("TASK_QUEUED", 12), STARTED, SUCCEEDED],
    [QUEUED, STARTED, heard("TASK_STARTED", 22), SUCCEEDED],
    [QUEUED, STARTED, heard("TASK_FAILED", 31)],
    [QUEUED, heard("TASK_STARTED", 20, attempt=2), SUCCEEDED]])
def test_an_event_too_few_or_too_many_is_a_violation(events: list[Heard]) -> None:
    assert says(check, TASK, events)["EVT-02"] == "violated 1"


def test_the_same_events_in_another_order_are_in_disorder() -> None:
    verdict = says(check, TASK, STARTED, QUEUED, SUCCEEDED)
    assert (verdict["EVT-02"], verdict["EVT-03"]) == ("holds 1", "violated 1")
    assert accuses(check, "EVT-03", TASK, STARTED, QUEUED, SUCCEEDED) == (
        f"Task {T}, of which channel heard TASK_STARTED 1, TASK_QUEUED 1, TASK_SUCCEEDED 1: "
        "TASK_STARTED does not follow while it is new.")


def test_what_was_submitted_before_somebody_listened_is_not_judged() -> None:
    assert "EVT-02" not in says(check, submit(), ran(21, 30), look(at=40), listened(from_ms=15))


def test_a_retry_and_a_requeue_are_ways_too() -> None:
    events = [QUEUED, STARTED, heard("TASK_RETRY_SCHEDULED", 30), heard("TASK_RETRIED", 130),
              heard("TASK_STARTED", 131, attempt=2), heard("TASK_DEAD_LETTERED", 140, attempt=2)]
    task = [submit(), ran(21, 29, outcome="failed"), ran(132, 139, outcome="failed", attempt=2),
            dead(at=150, attempt=2), listened()]
    assert says(check, task, events)["EVT-02"] == "holds 1"
    unannounced = [each for each in events if each is not events[3]]
    assert says(check, task, unannounced)["EVT-02"] == "violated 1"
    again = [submit(f"{T}~1", 10), dead(f"{T}~1", at=60), submit(T, 70), ran(72, 80), look(at=90),
             listened(), QUEUED, STARTED, heard("TASK_DEAD_LETTERED", 50), heard("TASK_QUEUED", 70),
             heard("TASK_STARTED", 71), heard("TASK_SUCCEEDED", 81)]
    assert says(check, again)["EVT-02"] == "holds 1"


def test_an_event_has_its_fields_and_a_type_of_the_table() -> None:
    for bad in (heard("TASK_DONE", 5), heard("TASK_QUEUED", 5, colour="red"),
                heard("TASK_QUEUED", 5, attempt="1"),  # type: ignore[arg-type]
                Heard(at_ns=ns(5), subscriber="channel", event="TASK_QUEUED"),
                Heard(at_ns=ns(5), subscriber="channel", event={"type": "TASK_QUEUED"})):
        assert says(check, listened(), bad)["EVT-01"] == "violated 1"


def test_no_two_events_share_an_id() -> None:
    twice = [heard("WORKER_STARTED", 5, event_id="e"), heard("WORKER_STARTED", 6, event_id="e")]
    assert says(check, listened(), twice)["EVT-04"] == "violated 2"


def worker(what: str, at: int) -> Heard:
    return heard(what, at, "", worker_id="worker-1")


def test_a_worker_is_announced_once_when_it_comes_and_when_it_goes() -> None:
    life = [born(1, at=5), submit(), ran(21, 30), gone(1, 50, code=0, asked="terminate"),
            listened()]
    both = [worker("WORKER_STARTED", 6), worker("WORKER_STOPPED", 49)]
    assert says(check, life, both)["EVT-06"] == "holds 2"
    for events in (both[:1], both[1:], [*both, worker("WORKER_STOPPED", 51)]):
        assert says(check, life, events)["EVT-06"] == "violated 2"


def test_a_worker_that_was_killed_is_announced_as_silent_once() -> None:
    life = [born(1, 2, at=5), submit(), ran(21, 30), killed(1, 50), listened(),
            worker("WORKER_STARTED", 6)]
    silent = worker("WORKER_STALE", 900)
    assert says(check, life, silent)["EVT-06"] == "holds 2"
    assert says(check, life)["EVT-06"] == "violated 2"
    assert says(check, life, silent, worker("WORKER_STALE", 950))["EVT-06"] == "violated 2"
    stood_still = fault("stopped", 20, 40, worker=1)
    both = [worker("WORKER_STALE", 30), silent]
    assert says(check, life, stood_still, both)["EVT-06"] == "holds 2"


def test_the_silence_of_a_leader_may_be_noticed_late() -> None:
    life = [born(1, 2, at=5), submit(), ran(21, 30), killed(1, 50), worker("WORKER_STARTED", 6),
            listened(to_ms=9_000)]
    assert says(check, life)["EVT-06"] == "holds 1"
    assert says(check, life, inspected("h", [LEADS, "worker-1"], {}))["EVT-06"] == "holds 1"
    assert says(check, life, inspected("h", [LEADS, "worker-2"], {}))["EVT-06"] == "violated 2"


def test_an_absorbed_entry_and_a_dropped_outcome_are_announced_once() -> None:
    copied = inspected("harness", [COPIED, T], {}, at=50)
    absorbed = heard("TASK_DUPLICATE_ABSORBED", 60)
    assert says(check, listened(), copied, absorbed)["EVT-05"] == "holds 1"
    assert says(check, listened(), copied)["EVT-05"] == "violated 1"
    late = [ran(10, 400), ran(200, 300, attempt=2, by=2), listened()]
    dropped = heard("TASK_SUPERSEDED", 401)
    assert says(check, late, dropped)["DLV-23"] == "holds 1"
    for events in ([], [dropped, heard("TASK_SUPERSEDED", 402)]):
        assert says(check, late, *events)["DLV-23"] == "violated 1"


def test_a_websocket_passes_on_what_is_published() -> None:
    published = [heard("WORKER_STARTED", at, event_id=str(at)) for at in (3000, 4000, 5000)]
    both = [listened(), listened("client", 1000), published]

    def client(*ids: int) -> list[Heard]:
        return [heard("WORKER_STARTED", 6000 + place, by="client", event_id=str(each))
                for place, each in enumerate(ids)]

    assert says(check, both, client(3000, 4000, 5000))["EVT-08"] == "holds 1"
    for ids in ([], [3000, 5000], [4000, 3000, 5000], [3000, 4000], [3000, 3000, 4000, 5000]):
        assert says(check, both, client(*ids))["EVT-08"] == "violated 1"


def test_a_slow_client_is_judged_by_what_the_case_expected() -> None:
    asked = [expects("BACK-07", holds={"closed": 1013})]
    for closed, verdict in ((1013, "holds 1"), (None, "violated 1")):
        seen = inspected("api-1", ["a client"], {"closed": closed}, at=LATE, expects=asked)
        assert says(check, seen)["BACK-07"] == verdict

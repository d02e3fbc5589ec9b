"""drained_on_stop: nothing new is started, what can be finished is, the rest is given back."""

from __future__ import annotations

from dtq_conformance.checkers.drained_on_stop import check
from dtq_conformance.history import Process

from tests.conformance.histories import (
    Part,
    T,
    U,
    absent,
    accuses,
    asked,
    born,
    dead,
    end,
    fault,
    gone,
    killed,
    look,
    ran,
    says,
    stall,
    start,
    submit,
    terminated,
)

IDLE = [born(1), terminated(1, 1000, in_hand=[])]
STOP = [born(1, 2), terminated(1, 1000, in_hand=[T], unstarted=[T])]
SHORT = [submit(steps=[{"sleep": 500}]), born(1, 2), terminated(1, 1000, in_hand=[T]), start(900),
         gone(1, 4100, code=0, asked="terminate")]
"""Asked to stop with 400 ms of a task left."""
LONG = [submit(steps=[{"sleep": 9000}]), *SHORT[1:]]
"""Asked to stop with more of a task left than the drain limit."""


def exits(at: int, code: int | None = 0, signal: int | None = None) -> Process:
    return gone(1, at, code=code, signal=signal, asked="terminate")


def test_a_worker_exits_with_code_0_within_its_drain_limit() -> None:
    def judged(*parts: Part) -> str:
        return says(check, *IDLE, *parts)["STOP-01"]

    assert judged(exits(1100)) == "holds 1"
    assert judged(exits(1100, 1)) == "violated 1"
    assert judged(exits(1100, None, 15)) == "violated 1"
    assert judged(exits(6500)) == "violated 1"
    assert judged(exits(6500), stall(2000, 3000)) == "holds 1"
    assert judged(look(at=2000)) == "unknown 0"
    assert judged(look()) == "violated 1"


def test_a_worker_that_was_killed_while_it_drained_is_not_judged() -> None:
    kill = fault("killed", 1050, 1060, worker=1, number=1)
    assert says(check, *IDLE, kill, killed(1, 1055)) == {}


def test_a_worker_that_its_own_task_killed_while_it_drained_is_not_judged() -> None:
    deadly = [submit(steps=[{"sleep": 200}, {"kill": True}]), born(1), start(900)]
    assert "STOP-01" not in says(check, *deadly, terminated(1, 1000, in_hand=[T]), killed(1, 1100))
    by_the_lab = gone(1, 1100, signal=9, asked="terminate")
    assert "STOP-01" not in says(check, *deadly, by_the_lab)
    assert says(check, *deadly, end(1050), by_the_lab)["STOP-01"] == "violated 1"


def test_a_worker_that_the_lab_stops_at_the_end_exits_with_code_0() -> None:
    assert says(check, born(1), exits(90)) == {"STOP-01": "holds 1"}
    assert says(check, born(1), exits(90, None, 15)) == {"STOP-01": "violated 1"}
    assert says(check, born(1), killed(1, 90)) == {}


def test_a_stopping_worker_starts_nothing_that_it_takes_afterwards() -> None:
    late = [exits(2000), ran(1400, 1500, U)]
    assert says(check, born(1), terminated(1, 1000, in_hand=[U]), late)["STOP-01"] == "holds 1"
    assert says(check, born(1), terminated(1, 1000, in_hand=[]), late)["STOP-01"] == "violated 1"
    assert accuses(check, "STOP-01", IDLE, late) == (
        f"worker-1 (pid 101) was asked to stop at 1 000 ms and started task {U} 400 ms later, "
        "which it had not in hand then.")


def test_what_can_be_finished_is_finished() -> None:
    assert says(check, *SHORT, end(1400), look()) == {"STOP-01": "holds 1", "STOP-02": "holds 1"}
    for given_up in ([], [end(1100, outcome="cancelled")]):
        assert says(check, *SHORT, given_up, look())["STOP-02"] == "violated 1"
    assert f"while task {T} (attempt 1 by worker-1 (pid 101)) had 400 ms left to run" in accuses(
        check, "STOP-02", *SHORT, look())


def test_what_was_finished_is_recorded() -> None:
    done = [*SHORT, end(1400)]
    assert says(check, *done, look(status="running"))["STOP-02"] == "violated 1"
    assert says(check, *done, ran(5200, 5300, attempt=2, by=2), look(attempt=2, by=2))[
        "STOP-02"] == "violated 1"
    assert "STOP-02" not in says(check, *done, ran(5200, 5300, attempt=2, by=2), fault(
        "broker_away", 1300, 1900, number=1))


def test_what_could_not_be_recorded_because_the_broker_was_out_of_reach_is_not_judged() -> None:
    again = [*SHORT, end(1400), ran(5200, 5300, attempt=2, by=2), look(attempt=2, by=2)]
    for effect in ("broker_restarted", "cut", "reply_lost"):
        worker = None if effect == "broker_restarted" else 1
        during = fault(effect, 1390, 4100, worker=worker, number=1)  # type: ignore[arg-type]
        before = fault(effect, 1100, 1300, worker=worker, number=1)  # type: ignore[arg-type]
        assert "STOP-02" not in says(check, *again, during), effect
        if effect == "broker_restarted":
            assert says(check, *again, before)["STOP-02"] == "violated 1"
    assert says(check, *again, fault("cut", 1390, 4100, worker=2, number=1))[
        "STOP-02"] == "violated 1"


def test_what_was_cancelled_was_not_let_go() -> None:
    let_go = [*SHORT, end(1100, outcome="cancelled"), look(status="cancelled", by=None)]
    assert "STOP-02" not in says(check, *let_go, asked("cancel", T, at=1050, said="requested"))
    for other in (asked("cancel", T, at=1050, outcome="refused", code="TASK_TERMINAL"),
                  asked("cancel", T, at=1200, said="requested"),
                  asked("cancel", U, at=1050, said="requested")):
        assert says(check, *let_go, other)["STOP-02"] == "violated 1"


def test_what_its_time_limit_ended_was_not_let_go() -> None:
    limited = [submit(steps=[{"sleep": 500}], timeout_ms=200), *SHORT[1:],
               end(1100, outcome="cancelled"), ran(1300, 1800, attempt=2, by=2)]
    assert "STOP-02" not in says(check, *limited, look(attempt=2, by=2))


def test_what_was_taken_and_not_started_is_given_back_with_its_attempt_unspent() -> None:
    stop = [submit(), *STOP, exits(1100)]
    assert says(check, *stop, ran(1300, 1400, by=2), look(by=2)) == {
        "STOP-01": "holds 1", "STOP-03": "holds 1"}
    assert says(check, *stop, ran(1300, 1400, attempt=2, by=2))["STOP-03"] == "violated 1"
    for seen, verdict in ((look(status="running"), "violated 1"), (absent(), "violated 1"),
                          (look(status="running", at=1500), "unknown 0"),
                          (look(status="cancelled"), "holds 1")):
        assert says(check, *stop, seen)["STOP-03"] == verdict
    assert says(check, *stop)["STOP-03"] == "unknown 0"


def test_a_task_that_failed_before_is_given_back_under_its_own_number() -> None:
    stop = [submit(), *STOP, exits(1100), ran(100, 200, outcome="failed", by=2)]
    assert says(check, *stop, ran(1300, 1400, attempt=2, by=2))["STOP-03"] == "holds 1"
    assert says(check, *stop, ran(1300, 1400, attempt=3, by=2))["STOP-03"] == "violated 1"


def test_what_the_stopping_worker_starts_after_all_is_not_to_be_given_back() -> None:
    for began in (1100, 990):  # the second one after the look at its hands
        assert says(check, submit(), *STOP, exits(2000), ran(began, 1200), look()) == {
            "STOP-01": "holds 1", "STOP-02": "holds 1"}


def test_what_cannot_be_finished_is_redelivered() -> None:
    cancelled = [*LONG, end(4000, outcome="cancelled")]
    assert says(check, *cancelled, ran(5200, 14200, attempt=2, by=2), look(attempt=2, by=2)) == {
        "STOP-01": "holds 1", "STOP-04": "holds 1"}
    assert says(check, *cancelled, ran(5200, 14200, by=2))["STOP-04"] == "violated 1"
    for seen, verdict in ((look(), "violated 1"), (look(status="running"), "violated 1"),
                          (absent(), "violated 1"), (look(status="cancelled"), "holds 1"),
                          (dead(error_class="WorkerLost", attempt=5), "holds 1"),
                          (look(status="running", at=5000), "unknown 0")):
        assert says(check, *cancelled, seen)["STOP-04"] == verdict
    assert says(check, *LONG)["STOP-04"] == "unknown 0"


def test_what_ended_about_the_drain_limit_can_go_either_way() -> None:
    assert says(check, *LONG, end(3900), look(status="running")) == {"STOP-01": "holds 1"}
    near = submit(steps=[{"sleep": 3100}])
    assert says(check, near, *LONG[1:], look(status="running")) == {"STOP-01": "holds 1"}


def test_a_task_that_is_gone_is_lost_however_early_it_is_looked_at() -> None:
    assert says(check, submit(), *STOP, exits(1100), absent(at=1200))["STOP-03"] == "violated 1"
    assert says(check, *LONG, absent(at=4200))["STOP-04"] == "violated 1"

"""duplicates_justified: each further execution has a cause that befell the holder before."""

from __future__ import annotations

from typing import Any

from dtq_conformance.checkers.duplicates_justified import check

from tests.conformance.histories import (
    T,
    U,
    accuses,
    born,
    end,
    fault,
    killed,
    look,
    ran,
    says,
    stall,
    start,
    submit,
)

AGAIN = [submit(), born(1, 2), start(100), ran(1300, 1400, attempt=2, by=2)]
"""Executed again 1 200 ms after the first start, the first holder being silent."""


def test_one_execution_needs_no_cause() -> None:
    assert says(check, submit(), born(1), ran(20, 30)) == {"DLV-05": "holds 1"}


def test_an_execution_after_a_failed_one_is_a_retry() -> None:
    assert says(check, submit(), born(1), ran(20, 30, outcome="failed"),
                ran(60, 70, attempt=2)) == {"DLV-05": "holds 1"}
    assert says(check, submit(), born(1), ran(20, 30), ran(60, 70, attempt=2)) == {
        "DLV-05": "violated 1"}


def test_an_expired_lease_is_no_cause() -> None:
    assert says(check, *AGAIN)["DLV-05"] == "violated 1"
    assert accuses(check, "DLV-05", *AGAIN) == (
        f"Task {T} was started again at 1 300 ms (attempt 2 by worker-2 (pid 102)): attempt 1 by "
        "worker-1 (pid 101) had started at 100 ms and had not ended; nothing that befell it "
        "before then explains this, and a lease that ran out is not a cause.")


def test_a_recorded_fault_of_the_holder_before_is_a_cause() -> None:
    for befell in ([killed(1, 200)], fault("stopped", 150, 1250, worker=1),
                   fault("cut", 150, 1250, worker=1), fault("cut", 150, None, worker=1),
                   fault("reply_lost", 150, 160, worker=1), fault("broker_away", 150, 160)):
        assert says(check, *AGAIN, befell)["DLV-05"] == "holds 1"


def test_a_kill_counts_from_when_it_may_have_been_sent_though_its_exit_is_heard_of_late() -> None:
    """Its record begins before the signal is sent, and the machine may stand still between."""
    for sent in (50, 150, 1250):
        assert says(check, *AGAIN, fault("killed", sent, 1360, worker=1),
                    killed(1, 1350))["DLV-05"] == "holds 1"
    assert says(check, *AGAIN, fault("killed", 1320, 1360, worker=1),
                killed(1, 1350))["DLV-05"] == "violated 1"
    assert says(check, submit(), born(1, 2), ran(100, 1310), ran(1300, 1400, attempt=2, by=2),
                fault("killed", 50, 1360, worker=1), killed(1, 1350))["DLV-05"] == "violated 1"


def test_what_befell_another_or_too_briefly_or_too_late_is_no_cause() -> None:
    for befell in ([killed(2, 1390)], [killed(1, 1350)], fault("stopped", 150, 900, worker=1),
                   fault("stopped", 1200, 5000, worker=1), fault("stopped", 150, 1250, worker=2),
                   fault("reply_lost", 150, 160, worker=2), fault("delayed", 150, 1250, worker=1)):
        assert says(check, *AGAIN, befell)["DLV-05"] == "violated 1"


def test_only_a_long_stall_of_the_machine_makes_it_unknown() -> None:
    assert says(check, *AGAIN, stall(200, 1100))["DLV-05"] == "unknown 1"
    assert says(check, *AGAIN, stall(200, 600), stall(650, 1100))["DLV-05"] == "unknown 1"
    assert says(check, *AGAIN, stall(200, 500))["DLV-05"] == "violated 1"


def test_a_handler_that_ran_past_its_time_limit_is_a_cause() -> None:
    rest = AGAIN[1:]
    assert says(check, submit(timeout_ms=1000), *rest)["DLV-05"] == "holds 1"
    assert says(check, submit(timeout_ms=5000), *rest)["DLV-05"] == "violated 1"
    assert says(check, submit(timeout_ms=1000), *rest, end(150))["DLV-05"] == "violated 1"


def test_a_time_limit_may_run_out_while_another_handler_lets_nothing_happen() -> None:
    """The second task's limit began when the first one blocked the loop; it never got to sleep."""
    ended_at_once = [submit(U, timeout_ms=300, steps=[{"sleep": 900}]), born(1, 2),
                     ran(1000, 1005, U, "cancelled"), ran(1400, 1600, U, attempt=2, by=2)]
    for step, verdict in (("block", "holds 2"), ("busy", "holds 2"), ("sleep", "violated 2")):
        other = [submit(steps=[{step: 800}]), ran(195, 998)]
        assert says(check, *ended_at_once, other)["DLV-05"] == verdict
    elsewhere = [submit(steps=[{"block": 800}]), ran(195, 998, by=2)]
    assert says(check, *ended_at_once, elsewhere)["DLV-05"] == "violated 2"
    long_before = [submit(steps=[{"block": 300}]), ran(195, 500)]
    assert says(check, *ended_at_once, long_before)["DLV-05"] == "violated 2"


def test_a_holder_that_stood_still_while_its_hands_were_looked_at_may_lose_its_lease() -> None:
    for stood_ms, verdict in ((900, "holds 1"), (700, "violated 1")):
        looked_at = fault("terminated", 150, 1100, worker=1, stood_still_ms=stood_ms)
        assert says(check, *AGAIN, looked_at)["DLV-05"] == verdict


def test_a_holder_that_was_asked_to_stop_may_let_its_task_go() -> None:
    stopped = [fault("terminated", 150, 150, worker=1), killed(1, 1350)]
    assert says(check, *AGAIN, end(1200, outcome="cancelled"), stopped)["DLV-05"] == "holds 1"
    assert says(check, *AGAIN, end(1200, outcome="ok"), stopped)["DLV-05"] == "violated 1"


def test_a_holder_that_starts_late_is_explained_by_its_own_misfortune() -> None:
    late = [submit(), born(1, 2), ran(1300, 1400, attempt=2, by=2), start(1500)]
    assert says(check, *late, fault("stopped", 100, 1490, worker=1)) == {"DLV-05": "holds 1"}
    assert says(check, *late) == {"DLV-05": "violated 1"}


def test_a_living_holder_keeps_its_task_longer_than_a_lease() -> None:
    long = [submit(), born(1, 2), ran(100, 3000)]
    assert says(check, *long) == {"DLV-05": "holds 1", "DLV-06": "holds 1"}
    assert says(check, *long, ran(1300, 1400, attempt=2, by=2)) == {
        "DLV-05": "violated 1", "DLV-06": "violated 1"}
    assert says(check, *long, ran(1300, 1400, attempt=2, by=2), stall(150, 1200)) == {
        "DLV-05": "unknown 1", "DLV-06": "unknown 1"}
    assert says(check, *long, killed(1, 2000)) == {"DLV-05": "holds 1"}


def test_a_settlement_whose_reply_was_lost_settles_the_task_once() -> None:
    lost = [submit(), born(1, 2), ran(100, 200),
            fault("reply_lost", 50, 900, worker=1, of="settlement", task_id=T)]
    assert says(check, *lost)["DLV-10"] == "holds 1"
    assert says(check, *lost, ran(1500, 1600, attempt=2, by=2))["DLV-10"] == "violated 1"
    assert says(check, lost[0], lost[1], lost[3], start(100))["DLV-10"] == "unknown 0"


def test_a_submission_whose_reply_was_lost_leaves_one_task() -> None:
    lost = [submit(label="x"), born(1, 2), ran(100, 200),
            fault("reply_lost", 5, 9, of="submission", task_id=T)]
    assert says(check, *lost)["TASK-04"] == "holds 1"
    assert says(check, *lost, ran(300, 400, attempt=2))["TASK-04"] == "violated 1"
    twin = start(300, U, label="x")
    assert says(check, *lost, twin)["TASK-04"] == "violated 1"
    assert U in accuses(check, "TASK-04", *lost, twin)


def test_a_submission_whose_reply_was_lost_is_accepted_in_the_end() -> None:
    lost = fault("reply_lost", 5, 9, of="submission", task_id=T)
    assert says(check, submit(outcome="refused"), lost) == {"TASK-04": "violated 1"}
    assert says(check, submit(outcome="unknown"), lost) == {"TASK-04": "unknown 0"}


def test_the_same_submission_is_answered_as_the_first_time() -> None:
    first, again = submit(at=10), submit(at=20)
    assert says(check, first, again, born(1), ran(30, 40)) == {
        "DLV-05": "holds 1", "TASK-02": "holds 1"}
    assert says(check, first, submit(at=20, outcome="refused"))["TASK-02"] == "violated 1"
    assert says(check, first, submit(at=20, answer={"duplicate": True}))["TASK-02"] == "violated 1"
    assert says(check, first, again, born(1), ran(30, 40), ran(50, 60, attempt=2)) == {
        "DLV-05": "violated 1", "TASK-02": "violated 1"}


def test_a_kill_counts_from_its_signal_though_the_exit_is_heard_of_later() -> None:
    story = [*AGAIN, killed(1, 1350)]
    assert says(check, *story, fault("killed", 1250, 1360, worker=1))["DLV-05"] == "holds 1"
    assert says(check, *story, fault("killed", 1250, 1360, worker=2))["DLV-05"] == "violated 1"


def test_short_stalls_far_apart_do_not_add_up() -> None:
    assert says(check, *AGAIN, stall(120, 560), stall(800, 1250))["DLV-05"] == "violated 1"


def test_the_settlement_of_a_permanent_failure_counts_too() -> None:
    lost = [submit(steps=[{"fail": "permanent"}]), born(1, 2), ran(100, 200, outcome="failed"),
            fault("reply_lost", 50, 900, worker=1, of="settlement", task_id=T)]
    assert says(check, *lost)["DLV-10"] == "holds 1"
    assert says(check, *lost, ran(1500, 1600, attempt=2, by=2))["DLV-10"] == "violated 1"


def test_the_reply_may_have_been_lost_to_another_than_the_holder_that_was_cut_off() -> None:
    lost = [submit(), born(1, 2), ran(100, 200), ran(1500, 1600, attempt=2, by=2),
            fault("reply_lost", 1600, 1700, worker=2, of="settlement", task_id=T)]
    cut = fault("cut", 150, 1900, worker=1, number=1)
    assert says(check, *lost)["DLV-10"] == "violated 1"
    assert says(check, *lost, cut)["DLV-10"] == "holds 1"


def test_a_settlement_that_is_sent_again_is_counted_once() -> None:
    def settled(counted: int) -> list[Any]:
        return [submit(), born(1), ran(100, 200), look(), fault(
            "reply_lost", 210, 400, worker=1, of="settlement", task_id=T, sent=2, counted=counted)]

    assert says(check, *settled(1))["DLV-35"] == "holds 1"
    assert says(check, *settled(0))["DLV-35"] == "violated 1"
    assert says(check, *settled(2))["DLV-35"] == "violated 1"
    assert "counts 0 successes more than before, not 1" in accuses(check, "DLV-35", *settled(0))

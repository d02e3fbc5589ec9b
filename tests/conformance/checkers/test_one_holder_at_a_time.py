"""one_holder_at_a_time: executions overlap only where something befell the first holder."""

from __future__ import annotations

from dtq_conformance.checkers.one_holder_at_a_time import check

from tests.conformance.histories import (
    T,
    U,
    accuses,
    born,
    fault,
    history,
    killed,
    ran,
    says,
    stall,
    start,
    submit,
)

OVERLAP = [submit(), born(1, 2), ran(100, 2000), ran(1300, 1400, attempt=2, by=2)]


def test_executions_one_after_the_other_have_one_holder_at_a_time() -> None:
    assert says(check, submit(), born(1, 2), ran(100, 200), ran(300, 400, attempt=2, by=2)) == {
        "DLV-07": "holds 1"}


def test_two_holders_at_once_are_a_violation_where_nothing_befell_the_first() -> None:
    assert says(check, *OVERLAP) == {"DLV-07": "violated 1"}
    assert accuses(check, "DLV-07", *OVERLAP) == (
        f"Task {T} had two holders at once: attempt 1 by worker-1 (pid 101) started at 100 ms and "
        "ran until 2 000 ms, and attempt 2 by worker-2 (pid 102) started at 1 300 ms, although "
        "nothing had befallen the first.")


def test_a_zombie_may_overlap_with_its_successor() -> None:
    assert says(check, *OVERLAP, fault("stopped", 150, 1250, worker=1)) == {"DLV-07": "holds 1"}
    assert says(check, *OVERLAP, fault("stopped", 150, 300, worker=1)) == {"DLV-07": "violated 1"}


def test_only_a_long_stall_of_the_machine_makes_an_overlap_unknown() -> None:
    assert says(check, *OVERLAP, stall(150, 1250)) == {"DLV-07": "unknown 1"}
    assert says(check, *OVERLAP, stall(150, 300)) == {"DLV-07": "violated 1"}


def test_an_execution_without_an_end_lasts_as_long_as_its_process() -> None:
    silent = [submit(), born(1, 2), start(100), ran(1300, 1400, attempt=2, by=2)]
    assert says(check, *silent) == {"DLV-07": "violated 1"}
    assert says(check, *silent, killed(1, 200)) == {"DLV-07": "holds 1"}


def test_a_third_holder_is_compared_with_each_before_it() -> None:
    story = [submit(), born(1, 2, 3), ran(100, 4000), ran(1300, 1400, attempt=2, by=2),
             ran(2600, 2700, attempt=3, by=3)]
    verdict = next(v for v in check(history(*story)) if v.clause == "DLV-07")
    assert [f.evidence["later"]["attempt"] for f in verdict.findings] == [2, 3]


def test_a_task_that_lost_two_holders_runs_alone() -> None:
    twice = [submit(), submit(U), born(1, 2, 3), start(100), killed(1, 200),
             start(1300, attempt=2, by=2), killed(2, 1400), ran(2500, 2600, attempt=3, by=3)]
    assert says(check, *twice) == {"DLV-07": "holds 1", "DLV-11": "holds 1"}
    assert says(check, *twice, ran(2700, 2800, U, by=3)) == {
        "DLV-07": "holds 2", "DLV-11": "holds 1"}
    beside = ran(2400, 2550, U, by=3)
    assert says(check, *twice, beside) == {"DLV-07": "holds 2", "DLV-11": "violated 1"}
    assert f"beside task {U}" in accuses(check, "DLV-11", *twice, beside)


def test_a_task_that_lost_one_holder_may_have_company() -> None:
    assert says(check, submit(), submit(U), born(1, 2), start(100), killed(1, 200),
                ran(1300, 1400, attempt=2, by=2), ran(1300, 1400, U, by=2)) == {
        "DLV-07": "holds 2"}


def test_a_thread_that_is_past_its_time_limit_is_no_company() -> None:
    twice = [submit(), born(1, 2, 3), start(100), killed(1, 200), start(1300, attempt=2, by=2),
             killed(2, 1400), ran(2500, 2600, attempt=3, by=3), ran(1000, 5000, U, by=3)]
    assert says(check, submit(U, timeout_ms=1000), *twice)["DLV-11"] == "holds 1"
    assert says(check, submit(U, timeout_ms=9000), *twice)["DLV-11"] == "violated 1"

"""capacity_respected: a worker never executes more at once than its concurrency."""

from __future__ import annotations

from dtq_conformance.checkers.capacity_respected import check

from tests.conformance.histories import (
    T,
    U,
    V,
    accuses,
    born,
    killed,
    ran,
    says,
    start,
    submit,
)

TWO_SLOTS = [submit(), submit(U), submit(V), born(1, 2, concurrency=2), ran(100, 500),
             ran(200, 400, U)]


def test_as_many_as_the_concurrency_may_run_at_once() -> None:
    assert says(check, *TWO_SLOTS) == {"WORK-02": "holds 2"}
    assert says(check, *TWO_SLOTS, ran(400, 450, V)) == {"WORK-02": "holds 3"}
    assert says(check, *TWO_SLOTS, ran(300, 350, V, by=2)) == {"WORK-02": "holds 3"}


def test_one_more_is_a_violation_that_names_the_others() -> None:
    assert says(check, *TWO_SLOTS, ran(300, 350, V)) == {"WORK-02": "violated 3"}
    assert accuses(check, "WORK-02", *TWO_SLOTS, ran(300, 350, V)) == (
        f"Task {V} was started at 300 ms (attempt 1 by worker-1 (pid 101)) in worker-1, whose "
        f"concurrency is 2, while it executed 2 others: task {T}, attempt 1 by worker-1 (pid 101), "
        f"since 100 ms; task {U}, attempt 1 by worker-1 (pid 101), since 200 ms.")


def test_a_handler_without_an_end_runs_as_long_as_its_process() -> None:
    open_ = [submit(), submit(U), born(1, concurrency=1), start(100), ran(300, 400, U)]
    assert says(check, *open_) == {"WORK-02": "violated 2"}
    dead_by_then = [submit(), submit(U), born(1, 2, concurrency=1), start(100), killed(1, 200),
                    ran(300, 400, U, by=2)]
    assert says(check, *dead_by_then) == {"WORK-02": "holds 2"}


def test_a_handler_past_its_time_limit_keeps_its_slot() -> None:
    overdue = [submit(timeout_ms=100), submit(U), born(1, concurrency=1), ran(100, 900)]
    assert says(check, *overdue, ran(900, 950, U)) == {"WORK-02": "holds 2", "WORK-07": "holds 1"}
    assert says(check, *overdue, ran(500, 550, U)) == {
        "WORK-02": "holds 2", "WORK-07": "violated 2"}


def test_of_a_worker_whose_concurrency_is_not_known_nothing_is_judged() -> None:
    assert says(check, submit(), submit(U), born(1), ran(100, 500), ran(200, 400, U)) == {}

"""What is measured after a kill, on small histories: the kill first, what followed second.

A rate is counted in windows of half a lease, here 500 ms.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from dtq_conformance import recovery
from dtq_conformance.history import Fault, Record
from dtq_conformance.recovery import Recovery, recoveries

from tests.conformance.histories import (
    born,
    end,
    fault,
    gone,
    history,
    killed,
    look,
    pid,
    ran,
    start,
)


def work(from_ms: int, count: int, *, every: int = 50, by: int = 1) -> list[Record]:
    """Tasks one after the other, each completed `every` ms after the one before."""
    return [line for place in range(count)
            for line in ran(from_ms + place * every, from_ms + (place + 1) * every,
                            f"{from_ms + place:032x}", by=by)]


def measured(*parts: object) -> list[Recovery]:
    return recoveries(history(*parts, look()))  # type: ignore[arg-type]


def test_a_run_without_a_kill_has_nothing_to_recover_from() -> None:
    assert measured(born(1), work(100, 5)) == []


def test_times_count_from_the_kill_to_the_first_completion_and_to_the_steady_rate() -> None:
    found = measured(born(1, 2), work(0, 20), fault("killed", 1000, 1001, worker=1),
                     killed(1, 1002), work(1600, 1, every=100, by=2), work(2000, 20, by=2))
    assert found == [Recovery(
        at_ms=1000.0, workers=("worker-1",), first_completion_ms=700.0, window_ms=500,
        rate_before_per_s=20.0, steady_ms=1050.0, wasted=0)]


def test_a_rate_that_never_fell_is_steady_at_once() -> None:
    (found,) = measured(born(1, 2), work(0, 40), killed(2, 1010))
    assert found.steady_ms == 0.0
    assert found.first_completion_ms == 40.0


def test_a_rate_that_stays_below_four_fifths_is_not_steady() -> None:
    (found,) = measured(born(1, 2), work(0, 20, by=1), work(0, 60, by=2), killed(1, 1000))
    assert found.rate_before_per_s == 40.0
    assert found.steady_ms is None


def test_work_that_runs_out_leaves_the_steady_rate_unknown() -> None:
    (found,) = measured(born(1, 2), work(0, 20), killed(1, 1000), work(1500, 3, by=2))
    assert found.first_completion_ms == 550.0
    assert found.steady_ms is None


def test_the_rate_before_counts_from_the_first_start() -> None:
    (found,) = measured(born(1), work(800, 4), killed(1, 1000))
    assert found.rate_before_per_s == 15.0  # the fourth ended in the moment of the kill


def test_without_a_completion_before_the_kill_there_is_no_rate_to_return_to() -> None:
    (found,) = measured(born(1, 2), start(100), killed(1, 200), ran(1300, 1400, attempt=2, by=2))
    assert (found.rate_before_per_s, found.steady_ms) == (0.0, None)
    assert (found.first_completion_ms, found.wasted) == (1200.0, 1)


def test_nothing_completed_after_the_kill_is_said_so() -> None:
    (found,) = measured(born(1), work(0, 4), killed(1, 300))
    assert found.first_completion_ms is None


def test_only_executions_that_the_kill_cut_short_are_wasted() -> None:
    (found,) = measured(
        born(1, 2), ran(10, 90, "1" * 32), ran(10, 95, "2" * 32, "failed"),
        start(20, "3" * 32), start(30, "4" * 32), start(40, "5" * 32, by=2), killed(1, 100),
        end(400, "5" * 32, by=2))
    assert found.wasted == 2


def test_workers_killed_by_one_fault_are_one_kill() -> None:
    three = fault("killed", 500, 510)
    at_once = [msgspec.structs.replace(record, pids=[pid(1), pid(2), pid(3)]) for record in three
               if isinstance(record, Fault)]
    (found,) = measured(born(1, 2, 3), work(0, 8), at_once, killed(1, 505), killed(2, 506),
                        killed(3, 507))
    assert found.workers == ("worker-1", "worker-2", "worker-3")
    assert found.at_ms == 500.0


def test_what_the_victim_completes_while_the_kill_is_on_its_way_came_before_it() -> None:
    (found,) = measured(born(1, 2), work(0, 20), ran(960, 1005, by=1),
                        fault("killed", 1000, 1010, worker=1), killed(1, 1010),
                        work(1500, 1, by=2))
    assert found.first_completion_ms == 550.0


def test_a_second_kill_ends_the_search_for_the_first_one_s_steady_rate() -> None:
    first, second = measured(born(1, 2, 3), work(0, 20), killed(1, 1000), killed(2, 1200),
                             work(1300, 20, by=3))
    assert first.steady_ms is None
    assert first.first_completion_ms == 350.0
    assert second.first_completion_ms == 150.0


def test_a_worker_that_its_own_task_killed_counts_and_one_that_exited_does_not() -> None:
    found = measured(born(1, 2), gone(1, 300, signal=9), gone(2, 400, code=0, asked="terminate"))
    assert [each.workers for each in found] == [("worker-1",)]


def test_what_the_lab_kills_when_all_is_over_does_not_count() -> None:
    assert measured(born(1), work(0, 4), killed(1, 70_000)) == []


def test_it_is_read_back_from_the_run_s_folder(tmp_path: Path) -> None:
    found = measured(born(1), work(0, 4), killed(1, 300))
    (tmp_path / recovery.FILE).write_bytes(msgspec.json.encode(found))
    assert recovery.read(tmp_path) == found
    assert recovery.read(None) == recovery.read(tmp_path / "elsewhere") == []

"""Lines become spans: executions, lives of processes, spells of faults."""

from __future__ import annotations

from dtq_conformance.pairing import lives_of, pair, spells_of

from tests.conformance.histories import (
    T,
    born,
    end,
    fault,
    flat,
    gone,
    history,
    ns,
    pid,
    ran,
    start,
)


def test_an_execution_is_a_start_with_its_end() -> None:
    first, second = history(start(100), ran(20, 30, attempt=2, by=2), end(150)).executions[T]
    assert (first.attempt, first.end_ns, first.outcome) == (2, ns(30), "ok")
    assert (second.attempt, second.end_ns, second.pid) == (1, ns(150), pid(1))


def test_an_end_without_a_start_is_seen_as_an_execution() -> None:
    (only,) = pair([end(150)])
    assert (only.start_ns, only.end_ns) == (ns(150), ns(150))


def test_a_process_lives_from_its_start_to_its_exit() -> None:
    first, second = lives_of(flat([gone(1, 50, signal=9), born(1), born(1, at=60)]))
    assert (first.start_ns, first.exit_ns, first.signal) == (ns(1), ns(50), 9)
    assert (second.start_ns, second.exit_ns) == (ns(60), None)


def test_a_fault_lies_on_its_victim_from_its_begin_to_its_end() -> None:
    (spell,) = spells_of(flat([fault("stopped", 100, 200, worker=1)]))
    assert (spell.from_ns, spell.to_ns, spell.pids) == (ns(100), ns(200), {pid(1)})
    (open_,) = spells_of(flat([fault("stopped", 100, worker=1)]))
    assert open_.to_ns is None

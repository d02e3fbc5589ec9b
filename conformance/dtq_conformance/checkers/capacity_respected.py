"""Capacity is respected: a worker never executes more at once than its concurrency.

A handler counts from its start line to its end line, also when its attempt is long over: a thread
that runs past its time limit keeps its slot.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import MS, at, holder
from dtq_conformance.history import Execution, History, Life
from dtq_conformance.verdict import Ledger, Verdict

CAPACITY, OVERDUE = "WORK-02", "WORK-07"

PROMISES = {
    CAPACITY: "All {n} executions found a free slot in their worker.",
    OVERDUE: "All {n} handlers that ran past their time limit kept their slot.",
}


def check(history: History) -> list[Verdict]:
    """Judge each start by what ran in the same worker at that instant."""
    ledger = Ledger("capacity_respected", PROMISES)
    for life, executions in _by_life(history):
        running: list[Execution] = []
        for execution in sorted(executions, key=lambda e: e.start_ns):
            running = [e for e in running if evidence.over_ns(history, e) > execution.start_ns]
            running.append(execution)
            ledger.judged(CAPACITY)
            overdue = [e for e in running[:-1] if _is_overdue(history, e, execution.start_ns)]
            ledger.judged(OVERDUE, len(overdue))
            if life.concurrency is not None and len(running) > life.concurrency:
                _overfull(history, ledger, OVERDUE if overdue else CAPACITY, life, running)
        for execution in executions:
            ledger.judged(OVERDUE, _is_overdue(history, execution, execution.end_ns))
    return ledger.verdicts()


def _is_overdue(history: History, execution: Execution, at_ns: int | None) -> bool:
    """Whether its handler still ran, or had just ended, at that instant, past its time limit."""
    limit_ms = evidence.request_of(history, execution.task_id).get("timeout_ms")
    return (at_ns is not None and isinstance(limit_ms, int)
            and at_ns >= execution.start_ns + limit_ms * MS)


def _by_life(history: History) -> list[tuple[Life, list[Execution]]]:
    """Each worker process whose concurrency is known, with what it executed."""
    found: dict[int, tuple[Life, list[Execution]]] = {}
    for executions in history.executions.values():
        for execution in executions:
            life = evidence.life(history, execution)
            if life is not None and life.concurrency is not None:
                found.setdefault(id(life), (life, []))[1].append(execution)
    return list(found.values())


def _overfull(history: History, ledger: Ledger, clause: str, life: Life,
              running: list[Execution]) -> None:
    last = running[-1]
    others = "; ".join(f"task {e.task_id}, {holder(e)}, since {at(history, e.start_ns)[3:]}"
                       for e in running[:-1])
    ledger.violated(clause, last.task_id, f"Task {last.task_id} was started "
                    f"{at(history, last.start_ns)} ({holder(last)}) in {life.name}, whose "
                    f"concurrency is {life.concurrency}, while it executed {len(running) - 1} "
                    f"others: {others}.", concurrency=life.concurrency,
                    running=[evidence.data(e) | {"task_id": e.task_id} for e in running])

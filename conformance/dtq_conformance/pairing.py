"""From lines to spans: an execution, the life of a process, and the spell of a fault.

Comes in: the single records of a history. Goes out: each beginning with the end that belongs to it,
or without one where none was recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dtq_conformance.record import Effect, Fault, Process, Witness


@dataclass(frozen=True)
class Execution:
    """One run of a handler: a start and, unless the process died or it still runs, its end."""

    task_id: str
    attempt: int
    worker_id: str
    pid: int
    label: str
    start_ns: int
    end_ns: int | None
    outcome: str | None


@dataclass(frozen=True)
class Life:
    """One worker process from its start to its exit (`None` while it lives)."""

    name: str
    pid: int
    role: str
    start_ns: int
    exit_ns: int | None
    exit_code: int | None
    signal: int | None
    asked: str
    concurrency: int | None


@dataclass(frozen=True)
class Spell:
    """A time during which a fault lay on some processes: `to_ns` is None if it never ended."""

    fault: str
    effect: Effect
    pids: frozenset[int]
    from_ns: int
    to_ns: int | None
    detail: dict[str, Any]


def pair(lines: Iterable[Witness]) -> list[Execution]:
    """Join each start line with the end line of the same task, attempt and process.

    An end without a start cannot be paired and becomes an execution that began when it ended,
    so that checkers see it.
    """
    open_: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    found: list[Execution] = []
    for line in sorted(lines, key=lambda w: (w.at_ns, w.event == "end")):
        key = (line.task_id, line.attempt, line.pid)
        if line.event == "end" and open_[key]:
            place = open_[key].pop(0)
            found[place] = replace(found[place], end_ns=line.at_ns, outcome=line.outcome)
            continue
        if line.event == "start":
            open_[key].append(len(found))
        ended = line.event == "end"
        found.append(Execution(
            task_id=line.task_id, attempt=line.attempt, worker_id=line.worker_id, pid=line.pid,
            label=line.label, start_ns=line.at_ns, end_ns=line.at_ns if ended else None,
            outcome=line.outcome if ended else None))
    return sorted(found, key=lambda e: e.start_ns)


def lives_of(records: Iterable[Process]) -> list[Life]:
    """Join each start of a process with its exit, ordered by start."""
    lives: list[Life] = []
    for record in sorted(records, key=lambda p: (p.at_ns, p.event == "exit")):
        if record.event == "start":
            lives.append(Life(record.name, record.pid, record.role, record.at_ns,
                              None, None, None, "", record.concurrency))
            continue
        for place, life in enumerate(lives):
            if life.name == record.name and life.pid == record.pid and life.exit_ns is None:
                lives[place] = replace(life, exit_ns=record.at_ns, exit_code=record.exit_code,
                                       signal=record.signal, asked=record.asked)
                break
    return lives


def spells_of(records: Sequence[Fault]) -> list[Spell]:
    """Join the begin of each fault with its end."""
    ends = {(fault.fault, fault.number): fault.at_ns for fault in records if fault.phase == "end"}
    return [Spell(fault.fault, fault.effect, frozenset(fault.pids), fault.at_ns,
                  ends.get((fault.fault, fault.number)), fault.detail)
            for fault in records if fault.phase == "begin"]

"""Where a good history offers a place for a fault, and how its records are changed there.

Comes in: a good history. Goes out: places to choose from, and the records of another history.
`faults_of_delivery` and `faults_of_attempts` are made of these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dtq_conformance import evidence, plan
from dtq_conformance.history import Execution, History, Record, Witness
from dtq_conformance.justification import befell
from dtq_conformance.key_table import KeyGroup, KeysAtRest
from dtq_conformance.operation import Operation
from msgspec.structs import replace

from tests.conformance.simulation import MS

Records = list[Record]
Seed = Callable[[History, random.Random], Records | None]

STRANGER = "f" * 32
"""An id that nobody submitted."""
OTHER_PID = 9999


# Places -----------------------------------------------------------------------------------------

def pick(drawn: random.Random, places: Iterable[Any]) -> Any:
    found = list(places)
    return drawn.choice(found) if found else None


def executions(history: History) -> Iterator[Execution]:
    for found in history.executions.values():
        yield from found


def status_of(history: History, task_id: str) -> str:
    look = evidence.last_look(history, task_id)
    return "" if look is None else str(look.answer.get("status", ""))


def with_status(history: History, *statuses: str) -> list[str]:
    return [task_id for task_id in history.accepted if status_of(history, task_id) in statuses]


def after(history: History, execution: Execution) -> list[Execution]:
    return [e for e in history.executions[execution.task_id] if e.start_ns > execution.start_ns]


def undisturbed(history: History) -> list[Execution]:
    """Last executions of succeeded tasks that nothing befell until well after their end."""
    return [found[-1] for task_id, found in history.executions.items()
            if found[-1].outcome == "ok" and found[-1].end_ns
            and status_of(history, task_id) == "succeeded"
            and befell(history, found[-1], found[-1].end_ns + 5 * MS) is None]


def ending(history: History, execution: Execution) -> str | None:
    return plan.ending(evidence.request_of(history, execution.task_id), execution.attempt)


# Changes ----------------------------------------------------------------------------------------

def changed(history: History, change: Callable[[Record], Record | None]) -> Records:
    """All records, each changed; what becomes None is left out."""
    return [new for record in history.records if (new := change(record)) is not None]


def is_line_of(record: Record, execution: Execution) -> bool:
    return isinstance(record, Witness) and (
        (record.task_id, record.attempt, record.pid)
        == (execution.task_id, execution.attempt, execution.pid)
        and record.at_ns in (execution.start_ns, execution.end_ns))


def without(records: Records, gone: Iterable[Execution]) -> Records:
    found = list(gone)
    return [record for record in records if not any(is_line_of(record, e) for e in found)]


def lines(execution: Execution, **fields: Any) -> Records:
    """A new execution like this one; `fields` are other values, `start_ns` and `end_ns` too."""
    told = {"task_id": execution.task_id, "attempt": execution.attempt, "label": execution.label,
            "worker_id": execution.worker_id, "pid": execution.pid} | fields
    start_ns, end_ns = told.pop("start_ns"), told.pop("end_ns")
    return [Witness(at_ns=start_ns, event="start", **told),
            Witness(at_ns=end_ns, event="end", outcome="ok", **told)]


def moved(history: History, execution: Execution, by_ns: int) -> Records:
    return changed(history, lambda record: replace(record, at_ns=record.at_ns + by_ns)
                   if isinstance(record, Witness) and is_line_of(record, execution) else record)


def seen(records: Records, task_id: str, *, from_ns: int = 0, last: int = 0,
         **fields: Any) -> Records:
    """Looks at a task, from an instant on or only the `last` ones, show something else."""
    looks = sorted((r for r in records if isinstance(r, Operation) and r.name == "look"
                    and r.task_id == task_id and r.asked_ns >= from_ns and r.answer),
                   key=lambda look: look.answered_ns)
    touched = {id(look) for look in looks[-last:]}
    return [replace(r, answer=r.answer | fields) if id(r) in touched and isinstance(r, Operation)
            else r for r in records]


def asked(records: Records, task_id: str, **fields: Any) -> Records:
    """The submissions of a task have other fields."""
    return [replace(r, request=r.request | fields) if isinstance(r, Operation)
            and (r.name, r.task_id) == ("submit", task_id) else r for r in records]


def letters(history: History, change: Callable[[list[Any]], list[Any]]) -> Records:
    return changed(history, lambda r: replace(r, answer={"letters": change(r.answer["letters"])})
                   if isinstance(r, Operation) and r.name == "dead_letters" else r)


def keys(history: History, change: Callable[[list[KeyGroup]], list[KeyGroup]]) -> Records:
    return changed(history, lambda r: replace(r, groups=change(r.groups))
                   if isinstance(r, KeysAtRest) else r)

"""A requeued task lives again, from attempt 1: each of its lives is judged as a task of its own.

Comes in: a history. Goes out: the same with the records of every earlier life under a name of
their own, `<task_id>~1` for the first, and a submission at the beginning of every later one. The
last life keeps the task's id. A history without a requeue is left as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

import msgspec

from dtq_conformance.history import History, Record, Witness
from dtq_conformance.operation import Operation, by_task

Name = Callable[[str, int], str]
"""The name of the life that a task had at an instant."""


def apart(history: History) -> History:
    """Tell the lives of each task apart."""
    requeues = by_task(sorted((o for o in history.operations if _took_place(history, o)),
                              key=lambda o: o.asked_ns))
    if not requeues:
        return history
    begins = {task_id: [o.asked_ns for o in asked] for task_id, asked in requeues.items()}

    def name(task_id: str, at_ns: int) -> str:
        begun = begins.get(task_id, [])
        life = bisect_right(begun, at_ns)
        return task_id if life == len(begun) else f"{task_id}~{life + 1}"

    records: list[Record] = []
    for record in history.records:
        if isinstance(record, Operation) and record.task_id in requeues:
            records += _operation(record, requeues[record.task_id],
                                  history.submissions[record.task_id], name)
        elif not isinstance(record, Witness):
            records.append(record)
    records += _witnesses(history.of(Witness), name)
    return History(history.header, tuple(records))


def is_past(task_id: str) -> bool:
    """Whether this names a life that a requeue has ended; its dead letter went with it."""
    return "~" in task_id


def _took_place(history: History, operation: Operation) -> bool:
    """A requeue without an answer took place if the task was seen otherwise than dead-lettered.
    One of an id that nobody submitted begins no life, whatever the answer."""
    if (operation.name != "requeue" or operation.outcome == "refused"
            or operation.task_id not in history.submissions):
        return False
    return operation.outcome == "ok" or any(
        look.asked_ns > operation.asked_ns and look.answer.get("status") != "dead_lettered"
        for look in history.looks.get(operation.task_id or "", []))


def _operation(operation: Operation, requeues: list[Operation], submissions: list[Operation],
               name: Name) -> Iterable[Operation]:
    """An operation under the name of its life. A requeue that took place is also the submission
    of the life that it begins, answered as the task's own was; a look at both lives at once shows
    nobody which it saw."""
    task_id = operation.task_id or ""
    answer = next((each.answer for each in submissions if each.outcome == "ok"), {})
    if operation in requeues:
        yield msgspec.structs.replace(operation, task_id=name(task_id, operation.asked_ns - 1))
        yield msgspec.structs.replace(
            operation, name="submit", task_id=name(task_id, operation.asked_ns),
            answer=answer, request={**submissions[0].request, "delay_ms": 0})
        return
    if operation.name == "look" and any(
            requeue.asked_ns < operation.answered_ns and operation.asked_ns < requeue.answered_ns
            for requeue in requeues):
        return
    yield msgspec.structs.replace(operation, task_id=name(task_id, operation.asked_ns))


def _witnesses(lines: Iterable[Witness], name: Name) -> Iterable[Witness]:
    """Each line under the name of the life that its execution began in."""
    begun: dict[tuple[str, int, int], str] = {}
    for line in sorted(lines, key=lambda each: each.at_ns):
        key = (line.task_id, line.attempt, line.pid)
        if line.event == "start" or key not in begun:
            begun[key] = name(line.task_id, line.at_ns)
        yield msgspec.structs.replace(line, task_id=begun[key])


def same_task(one: str, other: str) -> bool:
    """Whether two names are those of lives of one task."""
    return one.partition("~")[0] == other.partition("~")[0]


def was_requeued(history: History, task_id: str) -> bool:
    """Whether a task has had more lives than one."""
    return f"{task_id.partition('~')[0]}~1" in history.submissions

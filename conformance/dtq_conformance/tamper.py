"""The subcommand `tamper`: alter a finished history in one way, so that the judge must object.

Comes in: a history and a task id, or two. Goes out: a well-formed history, header and digest
right, with one lie in it. What no evidence would contradict is refused, since it would prove
nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import msgspec

from dtq_conformance import evidence, plan
from dtq_conformance.choices import choices
from dtq_conformance.exits import CONFORMS, InputError
from dtq_conformance.history import Execution, History, Record, Witness, write
from dtq_conformance.judging import load

OTHER_WORKER = "tampered"

OTHER_PID = 999_999_999
"""Beyond the largest pid of any system, so that it is surely another's."""

LATER_NS = 1_000_000
"""How long after the end of an execution its copy begins."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance tamper`."""
    parser.add_argument("history", type=Path, metavar="HISTORY", help="a history.jsonl of a run")
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--drop-execution", metavar="ID",
                      help="take the last execution of this task out of the witness lines")
    ways.add_argument("--repeat", metavar="ID", help="let this task's last execution come twice")
    ways.add_argument("--swap-holder", metavar="ID",
                      help="let another worker have executed this task last")
    ways.add_argument("--reorder", nargs=2, metavar=("ID", "ID"),
                      help="let the last executions of two tasks change places")
    parser.add_argument("--out", type=Path, metavar="FILE",
                        help="where to write it (default: HISTORY with .tampered before .jsonl)")
    parser.add_argument("--json", action="store_true", help="print the file's name as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Write the altered history and print its path."""
    history = load(arguments.history)
    altered = next(alter(history, *task_ids) for task_ids, alter in (
        ((arguments.drop_execution,), drop_execution), ((arguments.repeat,), repeat),
        ((arguments.swap_holder,), swap_holder), (arguments.reorder or (None,), reorder))
        if task_ids[0] is not None)
    out = arguments.out or arguments.history.with_suffix(f".tampered{arguments.history.suffix}")
    if out.resolve() == arguments.history.resolve():
        raise InputError(f"{out} is the history itself; name another file with --out.")
    try:
        write(out, history.header, altered)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}.") from error
    print(msgspec.json.encode({"history": str(out)}).decode() if arguments.json else out)
    return CONFORMS


def drop_execution(history: History, task_id: str) -> list[Record]:
    """Everything but the last execution of the task, which its record still speaks of."""
    last = _last(history, task_id)
    look = evidence.last_look(history, task_id)
    status = None if look is None else look.answer.get("status")
    request = evidence.request_of(history, task_id)
    by_its_handler = (status in ("failed", "dead_lettered") and look is not None
                      and look.answer.get("attempt") == last.attempt
                      and look.answer.get("error_class") != "WorkerLost"
                      and plan.ending(request, last.attempt) in ("retryable", "permanent"))
    if status != "succeeded" and not by_its_handler:
        raise InputError(f"Task {task_id} was last seen {status!r}, which needs no execution: "
                         "choose a task that its handler finished.")
    return _rewritten(history, last, lambda _: [])


def repeat(history: History, task_id: str) -> list[Record]:
    """Everything, and the last execution of the task once more after it."""
    last = _last(history, task_id)
    shift_ns = evidence.over_ns(history, last) - last.start_ns + LATER_NS
    return _rewritten(history, last, lambda line: [
        line, msgspec.structs.replace(line, at_ns=line.at_ns + shift_ns)])


def swap_holder(history: History, task_id: str) -> list[Record]:
    """Everything, with the last execution of the task under another worker's name and pid."""
    last = _last(history, task_id)
    look = evidence.last_look(history, task_id)
    named = {"attempt": last.attempt, "worker_id": last.worker_id, "pid": last.pid}
    if look is None or look.answer.get("result") != named:
        raise InputError(f"The record of task {task_id} does not name the holder of its last "
                         "execution: choose a task that succeeded with probe_task's own result.")
    return _rewritten(history, last, lambda line: [
        msgspec.structs.replace(line, worker_id=OTHER_WORKER, pid=OTHER_PID)])


def reorder(history: History, one: str, other: str) -> list[Record]:
    """Everything, with the last executions of two tasks in each other's place and time."""
    first, second = sorted((_last(history, one), _last(history, other)), key=lambda e: e.start_ns)
    altered = [_renamed(record, second) if _is_line_of(record, first)
               else _renamed(record, first) if _is_line_of(record, second) else record
               for record in history.records]
    if not any(choice.taken.task_id == second.task_id and not choice.is_strict
               and choice.left.execution.task_id == first.task_id
               for choice in choices(History(history.header, tuple(altered)))):
        raise InputError(f"Nothing proves that task {first.task_id} had to come before "
                         f"{second.task_id}: choose two that one worker of concurrency 1 "
                         "executed while both waited, the one of the higher level first or, of "
                         "one level, the one that was accepted first.")
    return altered


def _renamed(record: Record, becomes: Execution) -> Record:
    return msgspec.structs.replace(record, task_id=becomes.task_id, attempt=becomes.attempt,
                                   label=becomes.label)


def _is_line_of(record: Record, execution: Execution) -> bool:
    return isinstance(record, Witness) and _is_of(record, execution)


def _last(history: History, task_id: str) -> Execution:
    executions = history.executions.get(task_id)
    if not executions:
        raise InputError(f"No execution of a task {task_id!r} is in this history; it has "
                         f"{len(history.executions)} executed tasks"
                         + (f", {min(history.executions)} for example."
                            if history.executions else "."))
    return executions[-1]


def _rewritten(history: History, execution: Execution,
               change: Callable[[Witness], list[Record]]) -> list[Record]:
    """All records, with those lines changed that this execution is made of."""
    found: list[Record] = []
    for record in history.records:
        if isinstance(record, Witness) and _is_of(record, execution):
            found.extend(change(record))
        else:
            found.append(record)
    return found


def _is_of(line: Witness, execution: Execution) -> bool:
    at_ns = execution.start_ns if line.event == "start" else execution.end_ns
    return ((line.task_id, line.attempt, line.pid, line.at_ns)
            == (execution.task_id, execution.attempt, execution.pid, at_ns))

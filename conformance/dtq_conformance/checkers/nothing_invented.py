"""Nothing is invented: what is executed was submitted, and what was refused leaves nothing."""

from __future__ import annotations

import re
from typing import Any

from dtq_conformance import evidence
from dtq_conformance.evidence import at, holder
from dtq_conformance.history import History
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLV-09": "All {n} executed tasks had been submitted.",
    "TASK-03": "All {n} submissions outside the limits were refused in words, and left nothing.",
}

_RANGES = {"priority": (0, 9), "max_attempts": (1, 10), "timeout_ms": (1, 3_600_000)}
"""The limits of a submission's numbers, both ends included; from the contract's task fields."""


def check(history: History) -> list[Verdict]:
    """Judge every executed task, and every submission that had to be refused."""
    ledger = Ledger("nothing_invented", PROMISES)
    for task_id, executions in history.executions.items():
        ledger.judged("DLV-09")
        asked = history.submissions.get(task_id, [])
        if any(operation.outcome != "refused" for operation in asked):
            continue
        first = executions[0]
        why = "its submission had been refused" if asked else "nobody had submitted it"
        ledger.violated("DLV-09", task_id, f"Task {task_id} (label {first.label!r}) was executed "
                        f"{at(history, first.start_ns)} ({holder(first)}), but {why}.",
                        executions=[evidence.data(e) for e in executions])
    for asked in history.submissions.values():
        for operation in asked:
            _is_refused(history, ledger, operation)
    return ledger.verdicts()


def outside_limits(request: dict[str, Any]) -> list[str]:
    """The fields of a submission that are outside their limits."""
    found = [field for field, (least, most) in _RANGES.items()
             if field in request and not (isinstance(request[field], int)
                                          and least <= request[field] <= most)]
    task_id = request.get("task_id")
    if task_id is not None and not re.fullmatch("[0-9a-f]{32}", str(task_id)):
        found.append("task_id")
    return found


def _is_refused(history: History, ledger: Ledger, operation: Operation) -> None:
    fields = outside_limits(operation.request)
    if not fields:
        return
    task_id = operation.task_id or ""
    what = f"The submission of task {task_id} with {fields[0]} {operation.request[fields[0]]!r}"
    when = at(history, operation.answered_ns)
    if operation.outcome == "unknown":
        ledger.unknown("TASK-03", task_id, f"{what} had no answer {when}.")
        return
    ledger.judged("TASK-03")
    if operation.outcome == "ok":
        ledger.violated("TASK-03", task_id, f"{what} was accepted {when}, though it is outside "
                        "its limits.", fields=fields)
        return
    message = str(operation.answer.get("message", ""))
    if not operation.answer.get("code") or not any(field in message for field in fields):
        ledger.violated("TASK-03", task_id, f"{what} was refused {when} with code "
                        f"{operation.answer.get('code')!r} and the sentence {message!r}, which "
                        f"do not name the field.", fields=fields, answer=operation.answer)
    kept = [look for look in history.looks.get(task_id, [])
            if look.asked_ns >= operation.answered_ns and look.answer]
    accepted = any(o.outcome != "refused" for o in history.submissions[task_id])
    if kept and not accepted:
        ledger.violated("TASK-03", task_id, f"{what} was refused {when}, yet the target knew the "
                        f"task {at(history, kept[0].answered_ns)}.", answer=kept[0].answer)

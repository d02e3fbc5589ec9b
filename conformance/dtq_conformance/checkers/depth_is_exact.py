"""The depth of a queue is exact: as many unfinished tasks as the limit says, and not one more.

A task is surely one too many when, by its answer, as many others as the limit had been accepted and
none of them can have ended. A queue is surely not full when, with all that may be unfinished, it
has fewer.
"""

from __future__ import annotations

from dtq_conformance import lives
from dtq_conformance.evidence import at
from dtq_conformance.history import History
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

LIMIT = "DTQ_MAX_QUEUE_DEPTH"

PROMISES = {
    "BACK-01": "All {n} submissions that were refused for a full queue left nothing.",
    "BACK-02": "All {n} submissions were answered by the exact depth of the queue.",
    "BACK-03": "None of the {n} retries, promotions and requeues was refused for a full queue.",
}


def check(history: History) -> list[Verdict]:
    """Judge every submission to a queue with a limit of its own."""
    ledger = Ledger("depth_is_exact", PROMISES)
    if LIMIT not in history.header.settings:
        return ledger.verdicts()
    limit = int(history.header.settings[LIMIT])
    for operation in history.operations:
        if operation.name == "submit" and operation.task_id is not None and not any(
                each.name == "requeue" and each.asked_ns == operation.asked_ns
                for each in history.operations):
            _is_answered_by_the_depth(history, ledger, operation, limit)
            if operation.answer.get("code") == "QUEUE_FULL":
                _left_nothing(history, ledger, operation)
        if operation.name == "requeue":
            _is_not_refused(history, ledger, operation)
    for executions in history.executions.values():
        ledger.judged("BACK-03", sum(execution.attempt > 1 for execution in executions))
    return ledger.verdicts()


def _is_answered_by_the_depth(history: History, ledger: Ledger, operation: Operation,
                              limit: int) -> None:
    if operation.outcome == "unknown":
        return
    others = [name for name in history.accepted if name != operation.task_id]
    surely = sum(_is_surely_there(history, name, operation) for name in others)
    perhaps = sum(_may_be_there(history, name, operation) for name in others)
    is_full = operation.answer.get("code") == "QUEUE_FULL"
    ledger.judged("BACK-02")
    if operation.outcome == "ok" and not operation.answer.get("duplicate") and surely >= limit \
            and operation.asked_ns == history.submissions[operation.task_id or ""][0].asked_ns:
        ledger.violated("BACK-02", operation.task_id, f"Task {operation.task_id} was accepted "
                        f"{at(history, operation.answered_ns)}, when {surely} tasks of its queue "
                        f"were unfinished; the limit is {limit}.", unfinished=surely, limit=limit)
    elif is_full and perhaps < limit:
        ledger.violated("BACK-02", operation.task_id, f"Task {operation.task_id} was refused "
                        f"{at(history, operation.answered_ns)} because its queue were full, and at "
                        f"most {perhaps} tasks were unfinished; the limit is {limit}.",
                        unfinished=perhaps, limit=limit)


def _is_surely_there(history: History, task_id: str, operation: Operation) -> bool:
    """Whether this task was accepted, and unfinished, when the submission had been answered: then
    both of them were in the queue at once. A requeued one may be there beyond the limit."""
    accepted_ns = min(o.answered_ns for o in history.submissions[task_id] if o.outcome == "ok")
    if accepted_ns > operation.answered_ns or lives.was_requeued(history, task_id):
        return False
    begun = [each.start_ns for each in history.executions.get(task_id, [])]
    ended = [each.asked_ns for each in history.operations
             if each.name in ("cancel", "purge") and each.task_id in (None, task_id)]
    looks = [look for look in history.looks.get(task_id, [])
             if look.asked_ns > operation.answered_ns]
    is_seen = any(look.answer.get("status") in ("pending", "queued", "running", "retrying")
                  for look in looks)
    return is_seen or not any(each < operation.answered_ns for each in [*begun, *ended])


def _may_be_there(history: History, task_id: str, operation: Operation) -> bool:
    """Whether this task may have been accepted and unfinished when the submission was decided."""
    asked_ns = min(o.asked_ns for o in history.submissions[task_id])
    over = [look for look in history.looks.get(task_id, [])
            if look.answered_ns < operation.asked_ns and look.answer.get("status") in (
                "succeeded", "failed", "dead_lettered", "cancelled", "expired")]
    return asked_ns < operation.answered_ns and not over


def _left_nothing(history: History, ledger: Ledger, operation: Operation) -> None:
    task_id = operation.task_id or ""
    if any(each.outcome != "refused" for each in history.submissions[task_id]):
        return
    seen = [look for look in history.looks.get(task_id, [])
            if look.asked_ns > operation.answered_ns]
    if not seen:
        return
    ledger.judged("BACK-01")
    if seen[-1].answer or history.executions.get(task_id):
        ledger.violated("BACK-01", task_id, f"Task {task_id} was refused with QUEUE_FULL "
                        f"{at(history, operation.answered_ns)}, and was "
                        + ("executed." if history.executions.get(task_id) else
                           f"{seen[-1].answer.get('status')!r} "
                           f"{at(history, seen[-1].answered_ns)}."), answer=seen[-1].answer)


def _is_not_refused(history: History, ledger: Ledger, operation: Operation) -> None:
    ledger.judged("BACK-03")
    if operation.answer.get("code") == "QUEUE_FULL":
        ledger.violated("BACK-03", operation.task_id, f"The requeue of task {operation.task_id} "
                        f"was refused {at(history, operation.answered_ns)} because its queue were "
                        "full.", answer=operation.answer)

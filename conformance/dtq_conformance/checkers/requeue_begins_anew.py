"""A requeue begins a task anew: attempt 1, its whole budget, and only of what has a dead letter."""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import at, holder
from dtq_conformance.history import Fault, History
from dtq_conformance.justification import may_be_lost_unseen
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLQ-06": "All {n} requeued tasks began again with attempt 1.",
    "DLQ-08": "All {n} requeues and discards of what has no dead letter were refused.",
    "DLQ-12": "All {n} requeues of letters without a task were refused with TASK_NOT_FOUND.",
}


def check(history: History) -> list[Verdict]:
    """Judge every requeue and discard of the run."""
    ledger = Ledger("requeue_begins_anew", PROMISES)
    orphans = {fault.detail["task_id"] for fault in history.of(Fault)
               if (fault.effect, fault.phase) == ("forged", "bit")
               and not fault.detail.get("entries")}
    for operation in history.operations:
        if operation.name == "requeue" and operation.task_id in orphans:
            _is_unknown(history, ledger, operation)
            continue
        if operation.name in ("requeue", "discard") and operation.task_id is not None:
            if operation.outcome == "refused":
                ledger.judged("DLQ-08")
            elif operation.outcome == "ok":
                _had_a_letter(history, ledger, operation)
        if operation.name == "requeue" and operation.outcome == "ok":
            _begins_anew(history, ledger, operation)
    return ledger.verdicts()


def _is_unknown(history: History, ledger: Ledger, requeue: Operation) -> None:
    """The harness had made an entry without a task, and that had been put away."""
    if requeue.outcome == "unknown" or any(
            look.answer and look.answered_ns < requeue.asked_ns
            for look in history.looks.get(requeue.task_id or "", [])):
        return  # nobody can say what was done, or it had become a task, which others judge
    ledger.judged("DLQ-12")
    code = requeue.answer.get("code")
    if requeue.outcome == "ok" or code != "TASK_NOT_FOUND":
        ledger.violated("DLQ-12", requeue.task_id, f"The requeue of {requeue.task_id}, of which "
                        "there is an orphan's letter and no task, was "
                        f"{'done' if requeue.outcome == 'ok' else f'refused with {code}'} "
                        f"{at(history, requeue.answered_ns)} instead of refused with "
                        "TASK_NOT_FOUND.", answer=requeue.answer)


def _had_a_letter(history: History, ledger: Ledger, operation: Operation) -> None:
    """It was done, so the task was dead-lettered and had not been discarded before."""
    task_id = operation.task_id or ""
    before = [look for look in history.looks.get(task_id, [])
              if look.answered_ns < operation.asked_ns]
    after = [look for look in history.looks.get(task_id, [])
             if look.asked_ns > operation.answered_ns] if operation.name == "discard" else []
    ledger.judged("DLQ-08")
    discarded = [each for each in history.operations
                 if each.name == "discard" and each.outcome == "ok" and each is not operation
                 and each.task_id == task_id
                 and each.answered_ns < operation.asked_ns]
    what = f"{operation.name} of task {task_id} was done {at(history, operation.answered_ns)}"
    if discarded:
        ledger.violated("DLQ-08", task_id, f"The {what}, although it had been discarded "
                        f"{at(history, discarded[-1].answered_ns)}.")
    for look in (*before[-1:], *after[:1]):
        if evidence.terminal(look) and look.answer.get("status") != "dead_lettered":
            ledger.violated("DLQ-08", task_id, f"The {what}, and it was "
                            f"{look.answer.get('status')!r} {at(history, look.answered_ns)}.",
                            answer=look.answer)


def _begins_anew(history: History, ledger: Ledger, requeue: Operation) -> None:
    begun = next((task_id for task_id, asked in history.submissions.items()
                  if asked[0].asked_ns == requeue.asked_ns), None)
    executions = history.executions.get(begun or "", [])
    if begun is None or not executions:
        return
    first = executions[0]
    if first.attempt != 1 and may_be_lost_unseen(history, requeue.asked_ns, first.start_ns):
        return  # attempt 1 may have been taken by a worker that was lost before it began
    ledger.judged("DLQ-06")
    if first.attempt != 1:
        ledger.violated("DLQ-06", begun, f"Task {begun} was requeued "
                        f"{at(history, requeue.answered_ns)}, and was started with "
                        f"{holder(first)} {at(history, first.start_ns)} instead of attempt 1.",
                        execution=evidence.data(first))

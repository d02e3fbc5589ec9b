"""Cancelled stays cancelled: what waited is never executed, and after a request no attempt begins.

Comes in: the answers to `cancel`. A request does not undo what runs: that may still succeed.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import MS, at, holder
from dtq_conformance.history import Execution, History
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "CANCEL-01": "All {n} tasks that were cancelled while they waited are cancelled and were not "
                 "executed afterwards.",
    "CANCEL-05": "After none of the {n} requests to cancel an attempt began.",
    "CANCEL-06": "All {n} tasks that succeeded after a request had been executed to a good end.",
    "CANCEL-08": "All {n} refused cancellations were of tasks that were over or unknown.",
    "CANCEL-09": "None of the {n} tasks that waited at a purge was executed afterwards.",
}


def check(history: History) -> list[Verdict]:
    """Judge every cancellation and purge of the run."""
    ledger = Ledger("cancelled_stays_cancelled", PROMISES)
    for operation in history.operations:
        if operation.name == "cancel" and operation.task_id is not None:
            said = operation.answer.get("said")
            if said == "cancelled":
                _is_over(history, ledger, operation)
            elif said == "requested":
                _begins_no_attempt(history, ledger, operation)
            elif operation.outcome == "refused":
                _was_refused_rightly(history, ledger, operation)
        elif operation.name == "purge" and operation.outcome == "ok":
            _is_purged(history, ledger, operation)
    return ledger.verdicts()


def _started_after(history: History, task_id: str, instant_ns: int) -> list[Execution]:
    return [e for e in history.executions.get(task_id, []) if e.start_ns > instant_ns]


def _is_over(history: History, ledger: Ledger, cancel: Operation) -> None:
    task_id = cancel.task_id or ""
    ledger.judged("CANCEL-01")
    story = f"Task {task_id} was answered as cancelled {at(history, cancel.answered_ns)}"
    for execution in _started_after(history, task_id, cancel.answered_ns)[:1]:
        ledger.violated("CANCEL-01", task_id, f"{story}, and was started "
                        f"{at(history, execution.start_ns)} ({holder(execution)}).",
                        execution=evidence.data(execution))
        return
    later = [look for look in history.looks.get(task_id, [])
             if look.asked_ns > cancel.answered_ns]
    for look in later:
        if look.answer.get("status") != "cancelled":
            ledger.violated("CANCEL-01", task_id, f"{story}, and was "
                            f"{look.answer.get('status')!r} {at(history, look.answered_ns)}.",
                            answer=look.answer)
            return
    if not later:
        ledger.unknown("CANCEL-01", task_id, f"{story}, and no look at it came after that.")


def _begins_no_attempt(history: History, ledger: Ledger, cancel: Operation) -> None:
    """A start after the answer is another attempt if one had started before the question: what
    had been taken already may start a little later, the next one too if that one was over."""
    task_id = cancel.task_id or ""
    story = f"Task {task_id} was asked to be cancelled {at(history, cancel.answered_ns)}"
    before = [e for e in history.executions.get(task_id, []) if e.start_ns < cancel.asked_ns]
    last = max(before, key=lambda e: e.attempt, default=None)
    known = None if last is None else last.attempt + (
        evidence.over_ns(history, last) < cancel.answered_ns)
    if known is not None:
        ledger.judged("CANCEL-05")
        for execution in _started_after(history, task_id, cancel.answered_ns):
            if execution.attempt > known:
                ledger.violated("CANCEL-05", task_id, f"{story}, in attempt {known}, and another "
                                f"one was started {at(history, execution.start_ns)} "
                                f"({holder(execution)}).", execution=evidence.data(execution))
                return
    look = evidence.last_look(history, task_id)
    if look is None or look.asked_ns < cancel.answered_ns:
        ledger.unknown("CANCEL-05", task_id, f"{story}, and no look at it came after that.")
        return
    status = look.answer.get("status")
    if status == "succeeded":
        ledger.judged("CANCEL-06")
        if not any(e.outcome == "ok" for e in history.executions.get(task_id, [])):
            ledger.violated("CANCEL-06", task_id, f"{story}, and is 'succeeded', but no execution "
                            "of it was witnessed to end well.", answer=look.answer)
    elif status != "cancelled":
        early = evidence.too_early(history, look)
        if early is not None and not evidence.terminal(look):
            ledger.unknown("CANCEL-05", task_id, f"{story}; it is {status!r}, but {early}.")
            return
        ledger.judged("CANCEL-05")
        ledger.violated("CANCEL-05", task_id, f"{story}, and is {status!r} "
                        f"{at(history, look.answered_ns)} instead of 'cancelled'.",
                        answer=look.answer)


def _was_refused_rightly(history: History, ledger: Ledger, cancel: Operation) -> None:
    task_id = cancel.task_id or ""
    if cancel.answer.get("code") == "TASK_NOT_FOUND" and not any(
            o.outcome == "ok" and o.answered_ns < cancel.asked_ns
            for o in history.submissions.get(task_id, [])) and task_id in history.submissions:
        return  # its submission was on its way
    ledger.judged("CANCEL-08")
    for look in history.looks.get(task_id, []):
        if look.asked_ns > cancel.answered_ns and not evidence.terminal(look) and look.answer:
            ledger.violated("CANCEL-08", task_id, f"The cancellation of task {task_id} was refused "
                            f"({cancel.answer.get('code')}) {at(history, cancel.answered_ns)}, and "
                            f"it was {look.answer.get('status')!r} later.", answer=cancel.answer)
            return


def _is_purged(history: History, ledger: Ledger, purge: Operation) -> None:
    """What was accepted before the purge, was not seen running, and had never started, waited.
    What ran all through it is left alone."""
    asked = {o.task_id for o in history.operations if o.name == "cancel"}
    for task_id in history.accepted:
        running = [e for e in history.executions.get(task_id, [])
                   if e.start_ns < purge.asked_ns and evidence.over_ns(history, e)
                   > purge.answered_ns]
        look = evidence.last_look(history, task_id)
        if running and task_id not in asked and look is not None:
            ledger.judged("CANCEL-09")
            if look.answer.get("status") == "cancelled":
                ledger.violated("CANCEL-09", task_id, f"Task {task_id} was being executed "
                                f"({holder(running[0])}) at the purge that was answered "
                                f"{at(history, purge.answered_ns)}, and is 'cancelled'.",
                                execution=evidence.data(running[0]))
        accepted = min(o.answered_ns for o in history.submissions[task_id] if o.outcome == "ok")
        looks = history.looks.get(task_id, [])
        waited = [look for look in looks if look.asked_ns > accepted
                  and look.answered_ns < purge.asked_ns]
        if not waited or waited[-1].answer.get("status") not in ("queued", "pending", "retrying"):
            continue
        executions = history.executions.get(task_id, [])
        taken_ns = _taken_by_ns(history, task_id, purge)
        if any(waited[-1].asked_ns < e.start_ns <= taken_ns for e in executions):
            continue  # it was taken while the purge was under way, or just before
        ledger.judged("CANCEL-09")
        for execution in _started_after(history, task_id, purge.answered_ns)[:1]:
            ledger.violated("CANCEL-09", task_id, f"Task {task_id} was "
                            f"{waited[-1].answer.get('status')!r} before the purge that was "
                            f"answered {at(history, purge.answered_ns)}, and was started "
                            f"{at(history, execution.start_ns)} ({holder(execution)}).",
                            execution=evidence.data(execution))


def _taken_by_ns(history: History, task_id: str, purge: Operation) -> int:
    """Until when a start may be of what was taken before the answer to the purge: one lease later,
    unless the task was seen to wait in between."""
    lease_over_ns = purge.answered_ns + history.header.timing.lease_ms * MS
    return min([look.asked_ns for look in history.looks.get(task_id, [])
                if look.asked_ns > purge.answered_ns
                and look.answer.get("status") in ("queued", "pending", "retrying")]
               + [lease_over_ns])

"""Cancelled stays cancelled: what waited is never executed, and after a request no attempt begins.

Comes in: the answers to `cancel`. A request does not undo what runs: that may still succeed, unless
its handler works for so long that it must have been interrupted before. A cancel or requeue that is
sent again is answered with the state that it finds.
"""

from __future__ import annotations

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import MS, at, holder, ms
from dtq_conformance.history import Execution, History
from dtq_conformance.justification import befell, patience_ns
from dtq_conformance.operation import Operation
from dtq_conformance.target import TERMINAL
from dtq_conformance.verdict import Ledger, Verdict

INTERRUPT_MS = 500
"""How much later than one heartbeat interval a handler may be interrupted."""

PROMISES = {
    "CANCEL-01": "All {n} tasks that were cancelled while they waited are cancelled and were not "
                 "executed afterwards.",
    "CANCEL-03": "All {n} handlers that still worked when their tasks were asked to be cancelled "
                 "were interrupted in time, and the tasks are cancelled.",
    "CANCEL-05": "After none of the {n} requests to cancel an attempt began.",
    "CANCEL-06": "All {n} tasks that succeeded after a request had been executed to a good end.",
    "CANCEL-08": "All {n} refused cancellations were of tasks that were over or unknown.",
    "DLV-36": "All {n} cancels and requeues that were sent again were answered with the state that "
              "they found.",
    "CANCEL-09": "None of the {n} tasks that waited at a purge was executed afterwards.",
}

NOT_OF_THE_TASK = ("UNAUTHENTICATED", "FORBIDDEN", "BROKER_UNAVAILABLE")
"""Codes of refusals that say nothing of the task: who asked may not, or Redis refuses."""


def check(history: History) -> list[Verdict]:
    """Judge every cancellation and purge of the run."""
    ledger = Ledger("cancelled_stays_cancelled", PROMISES)
    for operation in history.operations:
        if operation.answer.get("code") in NOT_OF_THE_TASK:
            continue
        if operation.name == "cancel" and operation.task_id is not None:
            said = operation.answer.get("said")
            if said == "cancelled":
                _is_over(history, ledger, operation)
            elif said == "requested":
                _begins_no_attempt(history, ledger, operation)
                _is_interrupted(history, ledger, operation)
            elif operation.outcome == "refused":
                _was_refused_rightly(history, ledger, operation)
        elif operation.name == "purge" and operation.outcome == "ok":
            _is_purged(history, ledger, operation)
        if operation.name in ("cancel", "requeue") and operation.outcome != "unknown":
            _finds_its_state(history, ledger, operation)
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


def _is_interrupted(history: History, ledger: Ledger, cancel: Operation) -> None:
    """A handler that works for longer than the request may take ends `cancelled` by then. The probe
    awaits its `sleep` where handlers can be asynchronous at all."""
    task_id = cancel.task_id or ""
    limit_ns = cancel.answered_ns + (history.header.timing.heartbeat_ms + INTERRUPT_MS) * MS
    limit_ns += evidence.stalled_ns(history.stalls, cancel.answered_ns, limit_ns)
    for execution in history.executions.get(task_id, []):
        if (execution.start_ns > cancel.asked_ns
                or evidence.over_ns(history, execution) < cancel.answered_ns
                or not must_be_interrupted(history, execution, limit_ns)):
            continue
        ledger.judged("CANCEL-03")
        story = (f"Task {task_id} was asked to be cancelled {at(history, cancel.answered_ns)}, "
                 f"while {holder(execution)} executed it")
        end_ns = evidence.over_ns(history, execution)
        if execution.outcome != "cancelled" or end_ns > limit_ns:
            ended = (f"ended {execution.outcome} {at(history, end_ns)}" if execution.end_ns
                     else "never ended")
            ledger.violated("CANCEL-03", task_id, f"{story}; its handler {ended}, and had to be "
                            f"cancelled {ms(limit_ns - cancel.answered_ns)} after the request.",
                            execution=evidence.data(execution), limit_ns=limit_ns)
            return
        look = evidence.last_look(history, task_id)
        if look is None or (evidence.too_early(history, look) and not evidence.terminal(look)):
            ledger.unknown("CANCEL-03", task_id, f"{story}; nobody saw how the task ended.")
        elif look.answer.get("status") != "cancelled":
            ledger.violated("CANCEL-03", task_id, f"{story}; its handler was cancelled "
                            f"{at(history, end_ns)}, and the task is {look.answer.get('status')!r} "
                            f"{at(history, look.answered_ns)} instead of 'cancelled'.",
                            answer=look.answer, execution=evidence.data(execution))


def must_be_interrupted(history: History, execution: Execution, limit_ns: int) -> bool:
    """Whether nothing but the request can end this handler by then, and nothing keeps its worker
    from hearing of it."""
    request = evidence.request_of(history, execution.task_id)
    works_ms = plan.duration_ms(request, execution.attempt)
    if "handlers" not in history.header.claims or works_ms is None:
        return False
    by_itself_ns = execution.start_ns + min(works_ms, request.get("timeout_ms", works_ms)) * MS
    if by_itself_ns <= limit_ns or limit_ns > history.end_ns:
        return False
    lived = evidence.life(history, execution)
    recovery_ns = history.header.timing.recovery_ms * MS
    return not (
        lived is None or (lived.exit_ns is not None and lived.exit_ns <= limit_ns)
        or evidence.longest_stall_ns(history, execution.start_ns, limit_ns) > patience_ns(history)
        or any(spell.from_ns <= limit_ns and (spell.to_ns or limit_ns) + recovery_ns
               >= execution.start_ns for spell in history.spells)
        or any(other.pid == execution.pid and other.start_ns <= limit_ns
               and evidence.over_ns(history, other) >= execution.start_ns
               and plan.holds_up_its_worker(evidence.request_of(history, other.task_id),
                                            other.attempt)
               for others in history.executions.values() for other in others))


def _finds_its_state(history: History, ledger: Ledger, again: Operation) -> None:
    """One that was done before, in this life of its task, and whose state is known."""
    task_id = again.task_id or ""
    begun_ns = next((asked.asked_ns for asked in history.submissions.get(task_id, [])[:1]), 0)
    earlier = [o for o in history.operations if o.outcome == "ok" and o.answered_ns < again.asked_ns
               and o.name == again.name and (o.asked_ns == begun_ns if again.name == "requeue"
                                             else o.task_id == task_id)]
    if not earlier:
        return
    state = "cancelled" if any(o.answer.get("said") == "cancelled" for o in earlier) \
        else _state(history, again)
    if state is None or (state == "dead_lettered" and again.name == "requeue"):
        return
    ledger.judged("DLV-36")
    code = "NOT_REQUEUEABLE" if again.name == "requeue" else \
        "TASK_TERMINAL" if state in TERMINAL else ""
    if code and again.outcome == "refused" and again.answer.get("code") == code and (
            again.answer.get("status", state) == state):
        return
    if not code and again.answer.get("said") == "requested":
        return
    ledger.violated("DLV-36", task_id, f"The {again.name} of task {task_id} was done "
                    f"{at(history, earlier[0].answered_ns)} and sent again "
                    f"{at(history, again.asked_ns)}, when the task was {state!r}; it was answered "
                    f"{again.outcome} with {again.answer}, not with "
                    f"{code or 'another request to stop'}.", answer=again.answer, state=state)


def _state(history: History, operation: Operation) -> str | None:
    """The state in which an operation found its task, if that is certain."""
    task_id = operation.task_id or ""
    seen = [look for look in history.looks.get(task_id, [])
            if look.answered_ns < operation.asked_ns and evidence.terminal(look)]
    if seen:
        return str(seen[-1].answer.get("status"))
    for execution in history.executions.get(task_id, []):
        if (execution.start_ns < operation.asked_ns
                and evidence.over_ns(history, execution) > operation.answered_ns
                and befell(history, execution, operation.answered_ns) is None
                and evidence.longest_stall_ns(history, execution.start_ns, operation.answered_ns)
                <= patience_ns(history)):
            return "running"
    return None


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

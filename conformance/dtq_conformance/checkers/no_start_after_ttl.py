"""No start after the time to live: a task that waited too long expires, and one that runs does not.

The time counts from acceptance, which lies between the question and the answer. A task that was
taken in time may start a little later: at most one lease, and as long as a handler holds its worker
up.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import MS, at, holder
from dtq_conformance.history import History
from dtq_conformance.justification import befell, held_up_since_ns
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "TTL-01": "None of the {n} tasks with a time to live was started when that was over.",
    "TTL-02": "None of the {n} requeued tasks expired before its new time to live was over.",
    "TTL-03": "All {n} attempts that were running when their time to live ended ran to their end.",
    "TTL-05": "All {n} tasks whose time to live ended in the schedule were expired when they were "
              "due.",
}


def check(history: History) -> list[Verdict]:
    """Judge every accepted task that has a time to live."""
    ledger = Ledger("no_start_after_ttl", PROMISES)
    for task_id in history.accepted:
        accepted = next(o for o in history.submissions[task_id] if o.outcome == "ok")
        ttl_ms = accepted.request.get("ttl_ms") or 0
        if ttl_ms:
            _is_not_started_late(history, ledger, task_id, accepted, ttl_ms)
            _does_not_expire_early(history, ledger, task_id, accepted, ttl_ms)
            _is_not_interrupted(history, ledger, task_id, accepted, ttl_ms)
            _expires_when_due(history, ledger, task_id, accepted, ttl_ms)
    return ledger.verdicts()


def _is_not_started_late(history: History, ledger: Ledger, task_id: str, accepted: Operation,
                         ttl_ms: int) -> None:
    over_ns = accepted.answered_ns + ttl_ms * MS
    started_by_ns = over_ns + history.header.timing.lease_ms * MS
    ledger.judged("TTL-01")
    late = [e for e in history.executions.get(task_id, [])
            if held_up_since_ns(history, e) > started_by_ns]
    story = (f"The time to live of task {task_id}, {ttl_ms} ms from its acceptance "
             f"{at(history, accepted.answered_ns)}, was over {at(history, over_ns)}")
    if late:
        ledger.violated("TTL-01", task_id, f"{story}, and it was started "
                        f"{at(history, late[0].start_ns)} ({holder(late[0])}).",
                        execution=evidence.data(late[0]))
        return
    look = evidence.last_look(history, task_id)
    if look is None or evidence.terminal(look) or look.asked_ns < started_by_ns:
        return
    early = evidence.too_early(history, look)
    tell = ledger.unknown if early is not None else ledger.violated
    tell("TTL-01", task_id, f"{story}, and it is still {look.answer.get('status')!r} "
         f"{at(history, look.answered_ns)}" + (f", but {early}." if early else "."),
         answer=look.answer)


def _does_not_expire_early(history: History, ledger: Ledger, task_id: str, accepted: Operation,
                           ttl_ms: int) -> None:
    is_requeue = any(o.name == "requeue" and o.asked_ns == accepted.asked_ns
                     for o in history.operations)
    clause = "TTL-02" if is_requeue else "TTL-01"
    ledger.judged(clause, int(is_requeue))
    for look in history.looks.get(task_id, []):
        if (look.answer.get("status") == "expired"
                and look.answered_ns < accepted.asked_ns + ttl_ms * MS):
            ledger.violated(clause, task_id, f"Task {task_id} was "
                            f"{'requeued' if is_requeue else 'submitted'} "
                            f"{at(history, accepted.asked_ns)} with {ttl_ms} ms to live, and was "
                            f"'expired' {at(history, look.answered_ns)} already.",
                            answer=look.answer)
            return


def _is_not_interrupted(history: History, ledger: Ledger, task_id: str, accepted: Operation,
                        ttl_ms: int) -> None:
    """An attempt that began in time and ended well later leaves the task succeeded."""
    look = evidence.last_look(history, task_id)
    over_ns = accepted.answered_ns + ttl_ms * MS
    expired_ns = min((each.asked_ns for each in history.looks.get(task_id, [])
                      if each.answer.get("status") == "expired"), default=0)
    for execution in history.executions.get(task_id, []):
        if not (execution.start_ns < accepted.asked_ns + ttl_ms * MS
                and (execution.end_ns or 0) > over_ns):
            continue
        unsettled_ns = max(execution.end_ns or 0, expired_ns)
        if befell(history, execution, unsettled_ns) is not None or any(
                o.name == "cancel" and o.task_id == task_id for o in history.operations):
            continue  # something else may have ended it, or let it expire on its redelivery
        ledger.judged("TTL-03")
        if execution.outcome == "cancelled" or (
                execution.outcome == "ok" and look is not None
                and look.answer.get("status") == "expired"
                and not evidence.superseded(execution, history.executions[task_id])):
            ledger.violated("TTL-03", task_id, f"The time to live of task {task_id} was over "
                            f"{at(history, over_ns)}, while {holder(execution)} executed it; that "
                            f"ended {execution.outcome} {at(history, execution.end_ns or 0)}, and "
                            "the task is "
                            f"{look.answer.get('status') if look else 'not known'!r}.",
                            execution=evidence.data(execution))


def _expires_when_due(history: History, ledger: Ledger, task_id: str, accepted: Operation,
                      ttl_ms: int) -> None:
    delay_ms = accepted.request.get("delay_ms") or 0
    due_ns = accepted.answered_ns + delay_ms * MS
    late_ms = history.header.timing.schedule_ms + evidence.DUE_LATE_MS
    looks = [look for look in history.looks.get(task_id, [])
             if look.asked_ns > due_ns + late_ms * MS]
    if delay_ms <= ttl_ms or not looks or not evidence.undisturbed_until(
            history, looks[0].asked_ns):
        return
    ledger.judged("TTL-05")
    if not evidence.terminal(looks[0]):
        ledger.violated("TTL-05", task_id, f"Task {task_id}, which had {ttl_ms} ms to live, was "
                        f"due {at(history, due_ns)}, and is {looks[0].answer.get('status')!r} "
                        f"{at(history, looks[0].answered_ns)} instead of 'expired'.",
                        answer=looks[0].answer)

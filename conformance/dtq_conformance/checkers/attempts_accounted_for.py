"""Attempts are accounted for: one that was spent without being executed was lost with a worker.

A take whose reply was lost is given again, what was taken and not started is given back, and what
a live worker executes is nobody else's: none of them costs an attempt. So an attempt number that no
execution has, or a WorkerLost that ended a task, needs something that befell a worker. And what a
process was given without hearing of it does not stay in its hands.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import at, holder, ms
from dtq_conformance.history import Execution, Fault, History
from dtq_conformance.justification import befell, may_be_lost_unseen, patience_ns
from dtq_conformance.verdict import Ledger, Verdict

GIVEN_AGAIN, AFTER_GOODBYE, UNSEEN, LEASED = "DLV-25", "DLV-27", "DLV-29", "DLV-31"

PROMISES = {
    GIVEN_AGAIN: "All {n} attempts that were spent were executed, or lost with a worker.",
    AFTER_GOODBYE: "All {n} tasks that waited when a worker stopped in good order kept their "
                   "attempts.",
    UNSEEN: "All {n} tasks that were handed over with a lost reply did not stay with a worker "
            "that never saw them.",
    LEASED: "All {n} tasks that were put away as WorkerLost had lost their last holder.",
}


def check(history: History) -> list[Verdict]:
    """Judge every submitted task: each attempt number up to the last one that is known of."""
    ledger = Ledger("attempts_accounted_for", PROMISES)
    for task_id, asked in history.submissions.items():
        executions = sorted(history.executions.get(task_id, []), key=lambda e: e.start_ns)
        lost_at_ns, lost = _worker_lost(history, task_id)
        executed = {e.attempt for e in executions}
        ledger.judged(GIVEN_AGAIN, len(executed))
        ledger.judged(AFTER_GOODBYE, sum(
            asked[0].asked_ns < stopped_ns < min([e.start_ns for e in executions],
                                                 default=history.end_ns)
            for stopped_ns in _stops_in_order(history)))
        for attempt in range(1, max([0, *executed, lost]) + 1):
            later = [e.start_ns for e in executions if e.attempt > attempt]
            if attempt not in executed:
                ledger.judged(GIVEN_AGAIN)
                _was_lost_unseen(history, ledger, task_id, attempt, asked[0].asked_ns,
                                 min(later, default=lost_at_ns))
        if lost in executed:
            ledger.judged(LEASED)
            last = max((e for e in executions if e.attempt == lost), key=lambda e: e.start_ns)
            _lost_its_holder(history, ledger, last, lost_at_ns)
    for fault in history.of(Fault):
        if fault.phase == "bit" and fault.detail.get("of") == "take":
            _is_not_kept_unseen(history, ledger, str(fault.detail["task_id"]), fault)
    return ledger.verdicts()


def _stops_in_order(history: History) -> list[int]:
    """When workers that were asked to stop had done so."""
    return [life.exit_ns for life in history.lives if life.role == "worker"
            and life.exit_ns is not None and life.exit_code == 0 and life.asked == "terminate"]


def _worker_lost(history: History, task_id: str) -> tuple[int, int]:
    """When a task was first seen ended as WorkerLost, and with which attempt; 0 if it was not."""
    for look in history.looks.get(task_id, []):
        if (look.answer.get("error_class") == "WorkerLost"
                and look.answer.get("status") in ("dead_lettered", "failed")):
            return look.answered_ns, int(look.answer.get("attempt") or 0)
    return 0, 0


def _was_lost_unseen(history: History, ledger: Ledger, task_id: str, attempt: int, from_ns: int,
                     until_ns: int) -> None:
    """Nobody saw who had the attempt: anything that befell any worker meanwhile explains it."""
    goodbyes = [ns for ns in _stops_in_order(history) if from_ns <= ns <= until_ns]
    if may_be_lost_unseen(history, from_ns, until_ns):
        return
    clause = AFTER_GOODBYE if goodbyes else GIVEN_AGAIN
    what = (f"Attempt {attempt} of task {task_id} was spent by "
            f"{at(history, until_ns)[3:]} and no execution has this number")
    if goodbyes:
        what += f"; a worker stopped in good order {at(history, goodbyes[-1])}"
    stall_ns = evidence.longest_stall_ns(history, from_ns, until_ns)
    if stall_ns > patience_ns(history):
        ledger.unknown(clause, task_id, f"{what}; only the machine's standing still for "
                       f"{ms(stall_ns)} could explain it.", attempt=attempt)
        return
    ledger.violated(clause, task_id, f"{what}, although no worker was lost that could have held "
                    "it.", attempt=attempt, from_ns=from_ns, until_ns=until_ns,
                    executions=[evidence.data(e) for e in history.executions.get(task_id, [])])


def _lost_its_holder(history: History, ledger: Ledger, last: Execution, seen_ns: int) -> None:
    """The holder of the last attempt was seen: something must have befallen it."""
    if befell(history, last, seen_ns) is not None:
        return
    ended = "has not ended" if last.end_ns is None else f"ended {at(history, last.end_ns)}"
    what = (f"Task {last.task_id} was put away as WorkerLost, seen {at(history, seen_ns)}; its "
            f"last holder, {holder(last)}, had started {at(history, last.start_ns)} and {ended}")
    stall_ns = evidence.longest_stall_ns(history, last.start_ns, seen_ns)
    if stall_ns > patience_ns(history):
        ledger.unknown(LEASED, last.task_id, f"{what}; only the machine's standing still for "
                       f"{ms(stall_ns)} could explain it.", last=evidence.data(last))
        return
    ledger.violated(LEASED, last.task_id, f"{what}, although nothing had befallen it.",
                    last=evidence.data(last), seen_ns=seen_ns)


def _is_not_kept_unseen(history: History, ledger: Ledger, task_id: str, fault: Fault) -> None:
    """A process that never heard of a task must not keep it from the others."""
    look = evidence.last_look(history, task_id)
    if history.executions.get(task_id) or evidence.terminal(look):
        ledger.judged(UNSEEN)
        return
    early = None if look is None else evidence.too_early(history, look)
    if look is None or early is not None:
        ledger.unknown(UNSEEN, task_id, f"The reply by which task {task_id} was handed over was "
                       f"lost, but {early or 'no look at it was answered'}.")
        return
    ledger.judged(UNSEEN)
    ledger.violated(UNSEEN, task_id, f"The reply by which task {task_id} was handed over was lost "
                    f"{at(history, fault.at_ns)}; it is still {look.answer.get('status')!r} "
                    f"{at(history, look.answered_ns)} and was never started.", answer=look.answer)

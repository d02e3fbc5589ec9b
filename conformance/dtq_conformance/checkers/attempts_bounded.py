"""Attempts are bounded and numbered: each start has its own number, within the budget.

A retryable failure is followed by another attempt while the budget lasts; a permanent one is not.
"""

from __future__ import annotations

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import at, holder
from dtq_conformance.history import Execution, History
from dtq_conformance.justification import what_befell
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "RETRY-01": "All {n} executed tasks were started at most as often as they were allowed to.",
    "RETRY-02": "All {n} starts had an attempt number of their own, in order and within the "
                "budget.",
    "RETRY-03": "All {n} retryable failures with budget left were followed by another attempt.",
    "RETRY-04": "All {n} permanent failures were not attempted again.",
    "RETRY-08": "All {n} failures of a kind that is not worth a retry were not attempted again.",
}


def check(history: History) -> list[Verdict]:
    """Judge the executions of every submitted task."""
    ledger = Ledger("attempts_bounded", PROMISES)
    for task_id, executions in history.executions.items():
        most = evidence.budget(history, task_id)
        if most is None:
            continue
        ledger.judged("RETRY-01")
        if len(executions) > most:
            told = "; ".join(f"{holder(e)} {at(history, e.start_ns)}" for e in executions)
            ledger.violated("RETRY-01", task_id, f"Task {task_id} may be started {most} times and "
                            f"was started {len(executions)} times: {told}.", max_attempts=most,
                            executions=[evidence.data(e) for e in executions])
        _are_numbered(history, ledger, executions, most)
        for execution in executions:
            if execution.end_ns is not None and not evidence.superseded(execution, executions):
                _is_followed(history, ledger, execution, most)
    return ledger.verdicts()


def _are_numbered(history: History, ledger: Ledger, executions: list[Execution],
                  most: int) -> None:
    for place, execution in enumerate(executions):
        ledger.judged("RETRY-02")
        task_id = execution.task_id
        started = f"Task {task_id} was started {at(history, execution.start_ns)}"
        if not 1 <= execution.attempt <= most:
            ledger.violated("RETRY-02", task_id, f"{started} as {holder(execution)}; its attempts "
                            f"are numbered from 1 to {most}.", execution=evidence.data(execution),
                            max_attempts=most)
        if place == 0:
            continue
        before = executions[place - 1]
        if execution.attempt > before.attempt:
            continue
        # A holder that was held up between its take and its start starts late, and in vain.
        late = execution.attempt < before.attempt and all(
            e.attempt != execution.attempt for e in executions[:place])
        if late and what_befell(history, before, execution) is not None:
            continue
        ledger.violated("RETRY-02", task_id, f"{started} as {holder(execution)}, after "
                        f"{holder(before)} had started {at(history, before.start_ns)}; each start "
                        "has a higher number than the one before.",
                        earlier=evidence.data(before), later=evidence.data(execution))


def _is_followed(history: History, ledger: Ledger, execution: Execution, most: int) -> None:
    """What follows a failure that its payload foresaw."""
    task_id = execution.task_id
    planned = plan.ending(evidence.request_of(history, task_id), execution.attempt)
    later = [e for e in history.executions[task_id] if e.start_ns > execution.start_ns]
    if planned == "permanent" and execution.outcome in ("failed", "ok"):
        clause = "RETRY-04" if plan.says_permanent(
            evidence.request_of(history, task_id), execution.attempt) else "RETRY-08"
        ledger.judged(clause)
        again = [e for e in later if what_befell(history, execution, e) is None]
        if again:
            ledger.violated(clause, task_id, f"{holder(execution)} of task {task_id} failed "
                            f"permanently {at(history, execution.end_ns or 0)}, and the task was "
                            f"attempted again {at(history, again[0].start_ns)} "
                            f"({holder(again[0])}).",
                            failed=evidence.data(execution), again=evidence.data(again[0]))
    elif (planned == "retryable" and execution.outcome == "failed"
          and execution.attempt < most):
        _is_retried(history, ledger, execution, most, later)


def _is_retried(history: History, ledger: Ledger, failed: Execution, most: int,
                later: list[Execution]) -> None:
    task_id = failed.task_id
    story = (f"{holder(failed)} of task {task_id} failed {at(history, failed.end_ns or 0)} in a "
             f"way that is worth a retry, with {most - failed.attempt} of {most} attempts left")
    look = evidence.last_look(history, task_id)
    if later:
        ledger.judged("RETRY-03")
        return
    if look is None or look.asked_ns < (failed.end_ns or 0):
        ledger.unknown("RETRY-03", task_id, f"{story}, and no look came after that.")
        return
    status = look.answer.get("status")
    spent = status in ("dead_lettered", "failed") and look.answer.get("attempt", 0) >= most
    early = evidence.too_early(history, look)
    if early is not None and look.answer and not evidence.terminal(look):
        ledger.unknown("RETRY-03", task_id, f"{story}; the task is {status!r}, but {early}.")
        return
    ledger.judged("RETRY-03")
    if status not in ("cancelled", "expired") and not spent:
        became = f"is {status!r}" if look.answer else "is not known any more"
        ledger.violated("RETRY-03", task_id, f"{story}, but no attempt followed: the task "
                        f"{became} {at(history, look.answered_ns)}.",
                        failed=evidence.data(failed), answer=look.answer)

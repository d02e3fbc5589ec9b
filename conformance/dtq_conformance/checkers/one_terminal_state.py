"""One terminal state: observations follow the transition table, and an end stays what it was.

The result names the execution that settled the task; a holder that was superseded changes nothing.
"""

from __future__ import annotations

from typing import Any

from dtq_conformance import evidence, lives, plan
from dtq_conformance.evidence import at, holder
from dtq_conformance.history import Execution, History
from dtq_conformance.justification import befell
from dtq_conformance.operation import Operation
from dtq_conformance.states import reachable
from dtq_conformance.target import STATUSES, TERMINAL
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "STATE-01": "All {n} successive observations followed the transition table.",
    "STATE-02": "All {n} observations of finished tasks showed what had been shown before.",
    "STATE-03": "All {n} results are those of an execution that was witnessed and ended well.",
    "DLV-08": "All {n} holders that were superseded changed nothing.",
}


NO_HANDLERS = ("WorkerLost", "TimeoutError")
"""Error classes of ends that no handler's end comes before."""


def check(history: History) -> list[Verdict]:
    """Judge the looks at each task, and the last one against the executions."""
    ledger = Ledger("one_terminal_state", PROMISES)
    for task_id, looks in history.looks.items():
        for earlier, later in _successions(looks):
            _follows(history, ledger, task_id, earlier, later)
        _names_its_execution(history, ledger, task_id, looks[-1])
        if lives.was_requeued(history, task_id) and not task_id.endswith("~1"):
            _is_not_ended_by_an_earlier_life(history, ledger, task_id, looks)
    for task_id, executions in history.executions.items():
        for execution in executions:
            if execution.end_ns is not None and evidence.superseded(execution, executions):
                _changes_nothing(history, ledger, task_id, execution)
    return ledger.verdicts()


def _successions(looks: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Each look with the last one that was surely before it; looks at once have no order."""
    found = []
    for place, later in enumerate(looks):
        before = [look for look in looks[:place] if look.answered_ns <= later.asked_ns]
        if before and before[-1].answer:
            found.append((before[-1], later))
    return found


def _follows(history: History, ledger: Ledger, task_id: str, earlier: Operation,
             later: Operation) -> None:
    was, now = earlier.answer, later.answer
    before, after = at(history, earlier.answered_ns), at(history, later.answered_ns)
    if now:
        ledger.judged("STATE-01")
        if now.get("status") not in STATUSES or now.get("status") not in reachable(was["status"]):
            ledger.violated("STATE-01", task_id, f"Task {task_id} was seen {was['status']!r} "
                            f"{before} and {now.get('status')!r} {after}; the second cannot "
                            "follow the first.", earlier=was, later=now)
    if was.get("status") not in TERMINAL:
        return
    ledger.judged("STATE-02")
    changed = [field for field in ("status", "attempt", "result")
               if was.get(field) != now.get(field)]
    if not now:
        ledger.violated("STATE-02", task_id, f"Task {task_id} was seen {was['status']!r} "
                        f"{before} and was not known any more {after}.", earlier=was)
    elif changed:
        told = ", ".join(f"{field} {was.get(field)!r} became {now.get(field)!r}"
                         for field in changed)
        ledger.violated("STATE-02", task_id, f"Task {task_id} was finished ({was['status']!r}) "
                        f"{before} and had changed {after}: {told}.", earlier=was, later=now)


def _names_its_execution(history: History, ledger: Ledger, task_id: str,
                         look: Operation) -> None:
    answer, request = look.answer, evidence.request_of(history, task_id)
    if answer.get("status") != "succeeded" or not request:
        return
    executions = history.executions.get(task_id, [])
    result = answer.get("result")
    if plan.tells_its_holder(request):
        ledger.judged("STATE-03")
        if any(e.outcome == "ok" and _names(result, e) for e in executions):
            return
        known = "; ".join(f"{holder(e)} {'ended ' + e.outcome if e.outcome else 'never ended'}"
                          for e in executions)
        ledger.violated("STATE-03", task_id, f"Task {task_id} is reported as succeeded "
                        f"{at(history, look.answered_ns)} with the result {_told(result)}, but no "
                        f"execution by exactly that holder ended well. Witnessed: "
                        f"{known or 'nothing'}.",
                        result=result, executions=[evidence.data(e) for e in executions])
        return
    expected = plan.returns(request)
    if expected:
        ledger.judged("STATE-03")
        if result != expected[0]:
            ledger.violated("STATE-03", task_id, f"The handler of task {task_id} returns "
                            f"{expected[0]!r}; the task is reported as succeeded "
                            f"{at(history, look.answered_ns)} with {result!r}.",
                            result=result, expected=expected[0])


def _names(result: Any, execution: Execution) -> bool:
    return bool(result == {"attempt": execution.attempt, "worker_id": execution.worker_id,
                           "pid": execution.pid})


def _told(result: Any) -> str:
    if isinstance(result, dict) and {"attempt", "worker_id", "pid"} <= result.keys():
        return f"of attempt {result['attempt']} by {result['worker_id']} (pid {result['pid']})"
    return repr(result)


def _changes_nothing(history: History, ledger: Ledger, task_id: str, old: Execution) -> None:
    """`old` ended after a later attempt had started: whatever it ended with must not show."""
    executions = history.executions[task_id]
    new = max(executions, key=lambda e: e.attempt)
    ledger.judged("DLV-08")
    first = next(each for each in executions if evidence.superseded(old, [each]))
    story = (f"{holder(old)} of task {task_id} ended {old.outcome} "
             f"{at(history, old.end_ns or 0)}, after attempt {first.attempt} had started "
             f"{at(history, first.start_ns)}")
    for look in history.looks.get(task_id, []):
        wrong = _traces(history, look, old, new)
        if wrong is not None:
            ledger.violated("DLV-08", task_id, f"{story}; yet {wrong} "
                            f"{at(history, look.answered_ns)}.", superseded=evidence.data(old),
                            holder=evidence.data(new), answer=look.answer)
            return


def _is_not_ended_by_an_earlier_life(history: History, ledger: Ledger, task_id: str,
                                     looks: list[Operation]) -> None:
    """While nobody has ended an execution of this life, no outcome of a handler shows."""
    executions = history.executions.get(task_id, [])
    first_ns = min((evidence.over_ns(history, e) for e in executions), default=0)
    begun = [look for look in looks if executions
             and executions[0].start_ns < look.asked_ns and look.answered_ns < first_ns]
    if begun:
        ledger.judged("DLV-08")
    for look in begun:
        if (look.answer.get("status") in ("succeeded", "failed", "dead_lettered", "retrying")
                and look.answer.get("error_class") not in NO_HANDLERS):
            ledger.violated("DLV-08", task_id, f"Task {task_id} was requeued, and was "
                            f"{look.answer['status']!r} {at(history, look.answered_ns)}, before "
                            f"any execution of its new life had ended: {holder(executions[0])} ran "
                            f"until {at(history, first_ns)[3:]}. The outcome is an earlier "
                            "life's.", holder=evidence.data(executions[0]), answer=look.answer)
            return


def _gave_up(history: History, look: Operation, new: Execution) -> bool:
    """True if the task ended without its last holder, which was lost: no trace of another."""
    return (look.answer.get("error_class") == "WorkerLost"
            and befell(history, new, look.answered_ns) is not None)


def _traces(history: History, look: Operation, old: Execution, new: Execution) -> str | None:
    """What this look shows of the superseded holder's outcome; None if nothing."""
    status = look.answer.get("status")
    if status == "succeeded" and _names(look.answer.get("result"), old):
        return "its result is the task's"
    ended_ns = evidence.over_ns(history, new)
    if (old.end_ns is not None and old.end_ns < look.asked_ns and look.answered_ns < ended_ns
            and status in ("succeeded", "failed", "dead_lettered", "retrying")
            and new.start_ns < look.asked_ns and not _gave_up(history, look, new)):
        return f"the task was {status!r} while attempt {new.attempt} was still being executed"
    if look.asked_ns < ended_ns or status not in TERMINAL or new.end_ns is None:
        return None
    if status == "succeeded" and old.outcome == "ok" and new.outcome == "failed":
        return f"the task was 'succeeded', though attempt {new.attempt} had failed"
    if (status in ("failed", "dead_lettered") and old.outcome == "failed" and new.outcome == "ok"
            and look.answer.get("error_class") != "WorkerLost"):
        return f"the task was {status!r}, though attempt {new.attempt} had ended well"
    return None

"""Paused means paused: between the answer to a pause and the resume nothing is taken.

What was in hand runs on, and a start is no take: a task that was taken before may start a little
later. A start in a pause is proven to be a take of the pause when its task was submitted in it,
or when the attempt before it ended, or lost its holder, in it.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import MS, at, holder
from dtq_conformance.history import Execution, History
from dtq_conformance.justification import befell
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "PAUSE-01": "In none of the pauses one of the {n} tasks that waited was taken.",
    "PAUSE-02": "All {n} tasks that were in hand at a pause ran to their end in it.",
    "PAUSE-03": "All {n} tasks that were due in a pause left the schedule in it.",
    "PAUSE-05": "All {n} tasks that waited through a pause were executed after the resume.",
}


def check(history: History) -> list[Verdict]:
    """Judge every pause of the run."""
    ledger = Ledger("paused_means_paused", PROMISES)
    for from_ns, to_ns in _pauses(history):
        for task_id in history.accepted:
            began_ns = _began_to_wait_ns(history, task_id, from_ns, to_ns)
            if began_ns is not None:
                _waits(history, ledger, task_id, began_ns, to_ns)
            for execution in history.executions.get(task_id, []):
                _runs_on(history, ledger, execution, from_ns, to_ns)
            _is_promoted(history, ledger, task_id, from_ns, to_ns)
    return ledger.verdicts()


def _pauses(history: History) -> list[tuple[int, int]]:
    """From the answer to each pause to the question for the next resume, or to the end."""
    resumes = [o.asked_ns for o in history.operations if o.name == "resume"]
    return [(pause.answered_ns, min((r for r in resumes if r > pause.asked_ns),
                                    default=history.end_ns))
            for pause in history.operations if pause.name == "pause" and pause.outcome == "ok"]


def _began_to_wait_ns(history: History, task_id: str, from_ns: int, to_ns: int) -> int | None:
    """When, within a pause, a task surely began to wait; None if it did not."""
    asked_ns = min(o.asked_ns for o in history.submissions[task_id])
    if from_ns < asked_ns < to_ns:
        return asked_ns
    freed = [evidence.over_ns(history, execution)
             for execution in history.executions.get(task_id, []) if execution.start_ns < from_ns]
    if freed and from_ns < freed[-1] < to_ns and not _is_over(history, task_id, to_ns):
        return freed[-1]
    return None


def _is_over(history: History, task_id: str, before_ns: int) -> bool:
    return any(evidence.terminal(look) for look in history.looks.get(task_id, [])
               if look.answered_ns < before_ns)


def _waits(history: History, ledger: Ledger, task_id: str, began_ns: int, to_ns: int) -> None:
    ledger.judged("PAUSE-01")
    executions = history.executions.get(task_id, [])
    for execution in executions:
        if began_ns < execution.start_ns < to_ns:
            ledger.violated("PAUSE-01", task_id, f"Task {task_id} began to wait "
                            f"{at(history, began_ns)}, in a pause that ended "
                            f"{at(history, to_ns)}, and was started in it "
                            f"{at(history, execution.start_ns)} ({holder(execution)}).",
                            execution=evidence.data(execution))
            return
    if any(execution.start_ns > to_ns for execution in executions):
        ledger.judged("PAUSE-05")


def _runs_on(history: History, ledger: Ledger, execution: Execution, from_ns: int,
             to_ns: int) -> None:
    """What ran at the pause and ended well within it is settled within it, if it was looked at."""
    if not (execution.start_ns < from_ns and execution.end_ns is not None
            and from_ns < execution.end_ns < to_ns and execution.outcome == "ok"):
        return
    looks = [look for look in history.looks.get(execution.task_id, [])
             if execution.end_ns < look.asked_ns and look.answered_ns < to_ns]
    if not looks or befell(history, execution, looks[-1].asked_ns) is not None:
        return
    ledger.judged("PAUSE-02")
    late_ns = looks[-1].asked_ns - execution.end_ns
    if not evidence.terminal(looks[-1]) and late_ns > history.header.timing.lease_ms * MS:
        ledger.violated("PAUSE-02", execution.task_id, f"Task {execution.task_id} was in hand at "
                        f"a pause and ended well {at(history, execution.end_ns)}, and it was "
                        f"{looks[-1].answer.get('status')!r} still "
                        f"{at(history, looks[-1].answered_ns)}.", answer=looks[-1].answer)


def _is_promoted(history: History, ledger: Ledger, task_id: str, from_ns: int,
                 to_ns: int) -> None:
    """A task that was submitted for later and was due in a pause was seen afterwards, in it."""
    asked = [o for o in history.submissions[task_id] if o.outcome == "ok"]
    delay_ms = evidence.request_of(history, task_id).get("delay_ms", 0)
    late_ms = history.header.timing.schedule_ms + evidence.DUE_LATE_MS
    due_ns = asked[0].answered_ns + delay_ms * MS
    looks = [look for look in history.looks.get(task_id, [])
             if due_ns + late_ms * MS < look.asked_ns and look.answered_ns < to_ns]
    if not delay_ms or due_ns < from_ns or not looks or not evidence.undisturbed_until(
            history, looks[0].asked_ns):
        return
    ledger.judged("PAUSE-03")
    if looks[0].answer.get("status") == "pending":
        ledger.violated("PAUSE-03", task_id, f"Task {task_id} was due {at(history, due_ns)}, in a "
                        f"pause, and is still 'pending' in it {at(history, looks[0].answered_ns)}.",
                        answer=looks[0].answer)

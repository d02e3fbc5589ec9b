"""Duplicates are justified: each further execution has a recorded cause, and a lost reply has none.

A cause is a failed attempt before it, or something that befell the holder before; what only a
recorded stall of the machine could explain is unknown.
"""

from __future__ import annotations

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import MS, at, holder, ms
from dtq_conformance.history import Execution, Fault, History
from dtq_conformance.justification import Justification, befell, justifications, what_befell
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLV-05": "All {n} executed tasks were executed once, or again for a recorded cause.",
    "DLV-06": "All {n} executions longer than a lease, whose holder lived, kept their task.",
    "DLV-10": "All {n} tasks with a lost reply to their settlement were settled once.",
    "DLV-35": "All {n} settlements that were sent again were counted once.",
    "TASK-02": "All {n} submissions sent again under one id were answered as the first time and "
               "left one task.",
    "TASK-04": "All {n} tasks with a lost reply to their submission are there once.",
}


def check(history: History) -> list[Verdict]:
    """Judge every executed task, and those whose submission or settlement was repeated."""
    ledger = Ledger("duplicates_justified", PROMISES)
    again: dict[str, list[Justification]] = {}
    for justification in justifications(history):
        again.setdefault(justification.task_id, []).append(justification)
    for task_id, executions in history.executions.items():
        ledger.judged("DLV-05")
        _report(ledger, "DLV-05", again.get(task_id, []))
        for execution in executions:
            _keeps_its_task(history, ledger, execution, again.get(task_id, []))
    for task_id in _reply_lost(history, "settlement"):
        _is_settled_once(history, ledger, task_id)
    for fault in history.of(Fault):
        if fault.phase == "bit" and "counted" in fault.detail:
            _is_counted_once(history, ledger, fault)
    for task_id in _reply_lost(history, "submission"):
        _is_there_once(history, ledger, task_id, again.get(task_id, []))
    for task_id in history.submissions:
        _is_answered_again(history, ledger, task_id, again.get(task_id, []))
    return ledger.verdicts()


def _report(ledger: Ledger, clause: str, again: list[Justification]) -> None:
    for justification in again:
        if justification.standing == "unjustified":
            ledger.violated(clause, justification.task_id, justification.sentence,
                            **justification.evidence())
        elif justification.standing == "unknown":
            ledger.unknown(clause, justification.task_id, justification.sentence,
                           **justification.evidence())


def _keeps_its_task(history: History, ledger: Ledger, execution: Execution,
                    again: list[Justification]) -> None:
    """A handler that runs for longer than a lease, in a process that nothing befalls."""
    over_ns = evidence.over_ns(history, execution)
    lease_ns = history.header.timing.lease_ms * MS
    if over_ns - execution.start_ns <= lease_ns or befell(history, execution, over_ns) is not None:
        return
    ledger.judged("DLV-06")
    for justification in again:
        if justification.earlier is not execution or justification.standing == "justified":
            continue
        sentence = (f"{justification.sentence} That handler ran for "
                    f"{ms(over_ns - execution.start_ns)}, longer than the lease of "
                    f"{ms(lease_ns)}.")
        if justification.standing == "unjustified":
            ledger.violated("DLV-06", execution.task_id, sentence, **justification.evidence())
        else:
            ledger.unknown("DLV-06", execution.task_id, sentence, **justification.evidence())


def _reply_lost(history: History, of: str) -> list[str]:
    """Tasks of which a fault says that the reply to their submission or settlement was lost."""
    return sorted({str(fault.detail["task_id"]) for fault in history.of(Fault)
                   if fault.effect == "reply_lost" and fault.detail.get("of") == of
                   and fault.detail.get("task_id")})


def _is_settled_once(history: History, ledger: Ledger, task_id: str) -> None:
    executions = history.executions.get(task_id, [])
    ended = [e for e in executions if e.end_ns is not None and (
        e.outcome == "ok"
        or plan.ending(evidence.request_of(history, task_id), e.attempt) == "permanent")]
    if not ended:
        ledger.unknown("DLV-10", task_id, f"The reply to a settlement of task {task_id} was lost, "
                       "but no execution of it was witnessed to reach an end that settles it.")
        return
    ledger.judged("DLV-10")
    settled = min(ended, key=lambda e: e.end_ns or 0)
    for later in executions:
        if (settled.end_ns is not None and later.start_ns > settled.end_ns
                and not _was_not_the_settler(history, settled, later)):
            ledger.violated("DLV-10", task_id, f"Task {task_id} ended {settled.outcome} "
                            f"{at(history, settled.end_ns)} ({holder(settled)}), the reply to its "
                            f"settlement was lost, and it was executed again "
                            f"{at(history, later.start_ns)} ({holder(later)}).",
                            settled=evidence.data(settled), again=evidence.data(later))


def _is_counted_once(history: History, ledger: Ledger, fault: Fault) -> None:
    """The worker tells how many tasks it has succeeded in: one more than before."""
    task_id, counted = str(fault.detail["task_id"]), fault.detail["counted"]
    ledger.judged("DLV-35")
    if counted != 1:
        ledger.violated("DLV-35", task_id, f"The settlement of task {task_id} was sent "
                        f"{fault.detail.get('sent')} times, since a reply to it was lost by "
                        f"{at(history, fault.at_ns)[3:]}, and its worker counts {counted} "
                        "successes more than before, not 1.", detail=fault.detail)


def _was_not_the_settler(history: History, settled: Execution, later: Execution) -> bool:
    """True if something befell the holder of `settled` that kept it from settling: then the reply
    that was lost is that to another's settlement."""
    befallen = what_befell(history, settled, later)
    return befallen is not None and befallen.cause in ("died", "stopped", "cut", "broker_away")


def _is_there_once(history: History, ledger: Ledger, task_id: str,
                   again: list[Justification]) -> None:
    asked = history.submissions.get(task_id, [])
    if not any(operation.outcome == "ok" for operation in asked):
        if asked and all(operation.outcome == "refused" for operation in asked):
            ledger.judged("TASK-04")
            ledger.violated("TASK-04", task_id, f"The reply to the submission of task {task_id} "
                            "was lost, and when it was sent again it was refused "
                            f"{at(history, asked[-1].answered_ns)}.", answer=asked[-1].answer)
        else:
            ledger.unknown("TASK-04", task_id, f"The reply to the submission of task {task_id} "
                           "was lost, and no later one was answered.")
        return
    ledger.judged("TASK-04")
    _report(ledger, "TASK-04", again)
    _no_twin(history, ledger, "TASK-04", task_id)


def _no_twin(history: History, ledger: Ledger, clause: str, task_id: str) -> None:
    """No task of another id, which nobody submitted, carries this task's label."""
    payload = evidence.request_of(history, task_id).get("payload")
    label = payload.get("label") if isinstance(payload, dict) else None
    for other, executions in history.executions.items():
        if label and executions[0].label == label and other not in history.submissions:
            ledger.violated(clause, task_id, f"Task {task_id} was sent more than once and is there "
                            f"twice: task {other} with the same label {label!r} was executed "
                            f"{at(history, executions[0].start_ns)} ({holder(executions[0])}).",
                            twin=other)


def _is_answered_again(history: History, ledger: Ledger, task_id: str,
                       again: list[Justification]) -> None:
    asked = history.submissions[task_id]
    first = next((o for o in asked if o.outcome == "ok"), None)
    repeats = [o for o in asked if first is not None and o.asked_ns >= first.answered_ns
               and o.outcome != "unknown" and o.request == first.request]
    if first is None or not repeats:
        return
    ledger.judged("TASK-02", len(repeats))
    for repeat in repeats:
        if repeat.outcome != "ok" or repeat.answer != first.answer:
            ledger.violated("TASK-02", task_id, f"Task {task_id} was accepted "
                            f"{at(history, first.answered_ns)}; the same submission sent again "
                            f"was {repeat.outcome} {at(history, repeat.answered_ns)} with another "
                            f"answer: {repeat.answer}.", first=first.answer, again=repeat.answer)
    _report(ledger, "TASK-02", again)
    _no_twin(history, ledger, "TASK-02", task_id)

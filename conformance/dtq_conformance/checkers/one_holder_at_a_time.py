"""One holder at a time: executions of one task overlap only where something befell the first.

A task that lost two holders has, in turn, its next holder for itself alone.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import at, holder, ms
from dtq_conformance.history import Execution, History
from dtq_conformance.justification import befell, patience_ns, what_befell
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLV-07": "All {n} executed tasks had one holder at a time, as far as nothing befell it.",
    "DLV-11": "All {n} executions of tasks that had lost two holders ran alone in their worker.",
}


def check(history: History) -> list[Verdict]:
    """Judge every pair of overlapping executions of one task."""
    ledger = Ledger("one_holder_at_a_time", PROMISES)
    beside = _by_process(history)
    for task_id, executions in history.executions.items():
        ledger.judged("DLV-07")
        for place, later in enumerate(executions):
            for earlier in executions[:place]:
                _overlap(history, ledger, earlier, later)
            _alone(history, ledger, task_id, later, beside.get(later.pid, []))
    return ledger.verdicts()


def _by_process(history: History) -> dict[int, list[Execution]]:
    found: dict[int, list[Execution]] = {}
    for executions in history.executions.values():
        for execution in executions:
            found.setdefault(execution.pid, []).append(execution)
    return found


def _overlap(history: History, ledger: Ledger, earlier: Execution, later: Execution) -> None:
    over_ns = evidence.over_ns(history, earlier)
    if later.start_ns >= over_ns or what_befell(history, earlier, later) is not None:
        return
    until = "still runs" if earlier.end_ns is None else f"ran until {at(history, over_ns)[3:]}"
    sentence = (f"Task {earlier.task_id} had two holders at once: {holder(earlier)} started "
                f"{at(history, earlier.start_ns)} and {until}, and {holder(later)} started "
                f"{at(history, later.start_ns)}")
    evidences = {"earlier": evidence.data(earlier), "later": evidence.data(later)}
    stall_ns = evidence.longest_stall_ns(history, earlier.start_ns, later.start_ns)
    if stall_ns > patience_ns(history):
        ledger.unknown("DLV-07", earlier.task_id, f"{sentence}; only the machine's standing still "
                       f"for {ms(stall_ns)} could explain it.", **evidences)
        return
    ledger.violated("DLV-07", earlier.task_id,
                    f"{sentence}, although nothing had befallen the first.", **evidences)


def _alone(history: History, ledger: Ledger, task_id: str, execution: Execution,
           beside: list[Execution]) -> None:
    """A task whose holders died twice is dangerous company."""
    deaths = [gone_ns for other in history.executions[task_id]
              if (gone_ns := evidence.lost_holder_ns(history, other)) is not None
              and gone_ns <= execution.start_ns]
    if len(deaths) < 2:
        return
    ledger.judged("DLV-11")
    lived, over_ns = evidence.life(history, execution), evidence.over_ns(history, execution)
    for other in beside:
        if (other.task_id == task_id or evidence.life(history, other) != lived
                or other.start_ns >= over_ns
                or evidence.over_ns(history, other) <= execution.start_ns
                or _overdue(history, other, execution.start_ns)):
            continue
        ledger.violated("DLV-11", task_id, f"Task {task_id} had lost its holder "
                        f"{len(deaths)} times, yet {holder(execution)} executed it from "
                        f"{at(history, execution.start_ns)[3:]} beside task {other.task_id}, "
                        f"started {at(history, other.start_ns)}.",
                        execution=evidence.data(execution), beside=other.task_id)


def _overdue(history: History, other: Execution, at_ns: int) -> bool:
    """True if the other handler was past its time limit: its attempt is settled, its thread not."""
    befallen = befell(history, other, at_ns)
    return befallen is not None and befallen.cause == "past_its_limit"

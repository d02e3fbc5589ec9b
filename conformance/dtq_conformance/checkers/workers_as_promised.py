"""Workers are as promised: who they are, how soon they look, how they end.

The harness itself has watched them; what it expected stands beside what it saw.
"""

from __future__ import annotations

from dtq_conformance import expectations
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLV-32": "All {n} tasks of a killed worker were taken by one with room in time.",
    "PAUSE-04": "All {n} tasks that were handed over with a lost reply before a pause were given "
                "again.",
    "STOP-08": "All {n} released tasks were taken by another worker in time.",
    "WORK-01": "All {n} pairs of workers had the id that was given, and one drawn at random.",
    "WORK-04": "An idle worker saw new work at once on every level, {n} times.",
    "WORK-05": "All {n} attempts past their limit were settled then as TimeoutError.",
    "WORK-06": "What {n} handlers returned after their time limit changed nothing.",
    "WORK-08": "All {n} workers that were stuck said so and ended.",
    "WORK-09": "Neither kind of handler kept the other's slots from working, {n} times.",
    "WORK-13": "Nothing was left of the {n} workers that were killed.",
    "WORK-14": "Workers said nothing of themselves but what they may, {n} times.",
    "STOP-05": "All {n} workers that were sent SIGINT stopped in good order.",
    "STOP-06": "All {n} workers that were sent a second signal ended at once.",
    "SCHED-04": "More than 100 tasks that were due at once were promoted without a pause, {n} "
                "times.",
}


def check(history: History) -> list[Verdict]:
    """Judge all that was seen of workers."""
    ledger = Ledger("workers_as_promised", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    return ledger.verdicts()

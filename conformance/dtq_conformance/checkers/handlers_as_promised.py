"""Handlers are as promised: the demonstration tasks, the probe's steps and lines, long results.

The harness itself has looked; what it expected stands beside what it saw.
"""

from __future__ import annotations

from dtq_conformance import expectations
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DEMO-01": "All {n} demonstration tasks did what they are for.",
    "DEMO-02": "The probe did its steps in their order, {n} times.",
    "DEMO-03": "All {n} results without a return step named who had executed the task.",
    "DEMO-05": "All lines of the witness file were whole, {n} times.",
    "HAND-02": "Synchronous handlers and asynchronous ones were both executed, {n} times.",
    "HAND-03": "Handlers were tried again when they said that it helps, and else not, {n} times.",
    "HAND-04": "What was guarded by a key was done once for it, {n} times.",
    "HAND-05": "All {n} results that were too long were cut, marked and valid.",
    "CANCEL-04": "All {n} synchronous handlers that were asked to stop ran out.",
    "KEY-18": "All {n} tasks whose result was not kept any more said so.",
}


def check(history: History) -> list[Verdict]:
    """Judge all that was seen of handlers and of their results."""
    ledger = Ledger("handlers_as_promised", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    return ledger.verdicts()

"""What stands in the keys is as promised: their names, their fields, how long they live.

The harness itself has read them; what it expected stands beside each reading.
"""

from __future__ import annotations

from dtq_conformance import expectations
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "STATE-05": "All {n} running tasks were pending under one name.",
    "KEY-08": "All keys of the server began with the prefix, {n} times.",
    "KEY-09": "Another installation on the same server was left alone and did not show, in {n} "
              "readings.",
    "KEY-11": "All {n} names of processes were a worker's id and an incarnation.",
    "KEY-13": "All {n} consumers of workers that were gone did not stay.",
    "KEY-14": "All {n} entries had their fields.",
    "KEY-15": "All {n} dead letters had their fields.",
    "KEY-16": "All {n} purged queues that had nothing left were gone.",
    "KEY-17": "What was finished was kept for as long as the settings say, {n} times.",
    "KEY-19": "All {n} records of workers had their fields and their expiry.",
    "KEY-20": "The audit had its bound, {n} times.",
    "DLV-21": "Entries of all {n} finished tasks were put away and led to no execution.",
    "DLV-26": "All {n} tasks that a stopping worker had been given unseen were given back.",
    "SCHED-03": "The lock of the scheduler named its leader and lived for a time, {n} times.",
    "STOP-07": "All {n} tasks that were released waited again, each by the same entry.",
    "RETRY-11": "All {n} retries were promoted into the queue and the level of their task.",
    "CANCEL-02": "Nothing led to any of the {n} cancelled tasks.",
    "CANCEL-07": "All {n} requeued tasks whose records told of a request to cancel were executed.",
    "IDEM-07": "All {n} submissions of a key whose task had vanished were new work.",
    "IDEM-08": "All {n} keys told of their task what it was.",
    "IDEM-12": "All {n} keys that were another task's were left alone.",
    "IDEM-13": "All {n} keys of unfinished tasks had no expiry.",
    "IDEM-14": "All {n} keys of requeued tasks were in use again.",
}


def check(history: History) -> list[Verdict]:
    """Judge every reading of the keys."""
    ledger = Ledger("keys_as_promised", PROMISES)
    expectations.judge(history, ledger, PROMISES, "inspection")
    return ledger.verdicts()

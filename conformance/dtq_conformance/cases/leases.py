"""Cases of handlers that overrun their time: a lease has a limit, and a slot is free when it is."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import LEASE_MS, Trial

HANGS_MS = 9 * LEASE_MS
"""Longer than a target's recovery time, so that what it holds all the while is seen to be held."""

LIMIT_MS = 300


def _a_hung_handler_loses_its_task(bench: Bench) -> None:
    for worker in bench.start_workers(2, 1):
        bench.await_ready(worker)
    bench.submit({"block": HANGS_MS, "until_attempt": 1}, label="hung", timeout_ms=LIMIT_MS)
    bench.await_witness("start", label="hung")
    bench.submit(priority=9, label="shows that there is another worker")


def _an_overdue_handler_keeps_its_slot(bench: Bench) -> None:
    """Each worker has as many handlers that overrun as it has slots, and more work waits."""
    bench.start_worker(2)
    bench.submit_many(2, {"sleep": 3 * LEASE_MS}, label="overruns", timeout_ms=LIMIT_MS,
                      max_attempts=1)
    bench.await_witness("start", label="overruns", count=2)
    bench.submit_many(6, {"sleep": 100}, label="waits")


CASES = (
    Trial("conformance", "a_hung_handler_loses_its_task",
          "A handler blocks its worker for far longer than its time limit, beside an idle worker.",
          ("DLV-30", "DLV-01", "DLV-05", "RETRY-02"), _a_hung_handler_loses_its_task,
          needs=("status",)),
    Trial("conformance", "an_overdue_handler_keeps_its_slot",
          "All slots of the only worker are taken by handlers that overrun their time limit.",
          ("WORK-02", "WORK-07", "DLV-01"), _an_overdue_handler_keeps_its_slot),
)

"""Cases of delivery: everything runs, once, and a long handler keeps its task."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import LEASE_MS, Trial


def _everything_runs_once(bench: Bench) -> None:
    bench.start_workers(2)
    for number in range(20):
        bench.submit({"sleep": 20}, priority=number % 10)


def _a_long_handler_keeps_its_task(bench: Bench) -> None:
    bench.start_workers(2, 2)
    bench.submit_many(3, {"sleep": round(2.5 * LEASE_MS)}, label="long")


def _a_blocking_handler_keeps_its_task(bench: Bench) -> None:
    bench.start_workers(2, 1)
    bench.submit({"block": round(1.8 * LEASE_MS)}, label="blocks the event loop")
    bench.submit({"busy": round(1.8 * LEASE_MS)}, label="holds the interpreter's lock")


def _a_killed_holder_is_replaced(bench: Bench) -> None:
    first = bench.start_worker()
    bench.submit_many(3, {"sleep": 300}, label="held")
    bench.await_witness("start", label="held", count=3)
    first.process.kill()
    bench.start_worker()


CASES = (
    Trial("conformance", "everything_runs_once",
          "Twenty short tasks on two workers that nothing befalls.",
          ("STATE-01", "STATE-02", "STATE-03", "DLV-01", "DLV-02", "DLV-09", "RETRY-01",
           "RETRY-02", "STOP-01"), _everything_runs_once),
    Trial("conformance", "a_long_handler_keeps_its_task",
          "Handlers that run for two and a half leases, with an idle worker beside them.",
          ("DLV-06", "DLV-01"), _a_long_handler_keeps_its_task),
    Trial("conformance", "a_blocking_handler_keeps_its_task",
          "Handlers that hold up their process for longer than a lease, with an idle worker beside "
          "them.",
          ("DLV-06", "DLV-01"), _a_blocking_handler_keeps_its_task),
    Trial("conformance", "a_killed_holder_is_replaced",
          "A worker with three tasks in hand is killed; another one executes them.",
          ("DLV-03", "DLV-05", "DLV-07", "RETRY-02"), _a_killed_holder_is_replaced),
)

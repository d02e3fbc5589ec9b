"""Cases of shutdown: a worker that is asked to stop finishes what it has begun."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial


def _idle_workers_stop(bench: Bench) -> None:
    bench.start_workers(2)
    bench.submit_many(4, {"sleep": 20})


CASES = (
    Trial("conformance", "idle_workers_stop",
          "Workers that have nothing in hand are asked to stop.",
          ("STOP-01", "DLV-01"), _idle_workers_stop),
)

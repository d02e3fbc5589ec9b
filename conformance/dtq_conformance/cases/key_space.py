"""Cases of the key space: whatever became of the tasks, nothing is left behind."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial

LEADER_MS = 10_000
"""What the death of the scheduler's leader may add: nothing shows which worker it is."""


def _nothing_stays_behind(bench: Bench) -> None:
    bench.start_worker(1)
    bench.submit({"sleep": 2_500}, label="keeps the first worker")
    bench.await_witness("start", label="keeps the first worker")
    bench.await_ready(bench.start_worker(1))
    bench.submit({"sleep": 60_000, "until_attempt": 1}, label="held")
    held = bench.await_witness("start", label="held")
    bench.worker_of(held.pid).process.kill()
    bench.submit_many(10, {"sleep": 10})
    bench.submit_many(5, {"fail": "retryable", "until_attempt": 2})
    bench.submit_many(5, delay_ms=200)
    bench.submit({"fail": "permanent"})
    bench.submit({"fail": "retryable"}, max_attempts=2)
    bench.start_worker()


CASES = (
    Trial("conformance", "nothing_stays_behind",
          "Tasks succeed, are retried, delayed, dead-lettered and lose their holder; then every "
          "key is looked at.",
          ("KEY-01", "KEY-02", "KEY-03", "KEY-04", "KEY-05", "DLV-01"), _nothing_stays_behind,
          recovery_more_ms=LEADER_MS),
)

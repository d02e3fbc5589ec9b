"""Cases of the schedule: retries and delayed tasks start at their time, not before."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial

CONCURRENCY = 60
"""More than can be due at a time, so that a worker always has room."""


def _each_retry_waits_longer(bench: Bench) -> None:
    worker = bench.start_worker(CONCURRENCY)
    bench.await_ready(worker)
    for _ in range(40):
        bench.submit({"fail": "retryable", "until_attempt": 5}, max_attempts=6)


def _delays_are_spread(bench: Bench) -> None:
    worker = bench.start_worker(CONCURRENCY)
    bench.await_ready(worker)
    for _ in range(240):
        bench.submit({"fail": "retryable", "until_attempt": 1})


def _delayed_tasks_wait(bench: Bench) -> None:
    bench.start_worker(CONCURRENCY)
    bench.submit(label="shows that the worker works")
    bench.await_witness("end", label="shows that the worker works")
    for _ in range(50):
        bench.submit(delay_ms=bench.random.randrange(1, 1_500))


CASES = (
    Trial("conformance", "each_retry_waits_longer",
          "Forty tasks fail five times; the delay doubles up to its limit.",
          ("RETRY-05", "RETRY-03", "RETRY-12", "SCHED-02", "DLV-01"), _each_retry_waits_longer),
    Trial("conformance", "delays_are_spread",
          "240 tasks fail at once and are retried with a wide jitter.",
          ("RETRY-05", "RETRY-06", "DLV-01"), _delays_are_spread,
          base_delay_ms=1_500, max_delay_ms=1_500, jitter=0.5),
    Trial("conformance", "delayed_tasks_wait",
          "Fifty tasks are submitted for later.",
          ("SCHED-01", "SCHED-02", "DLV-01"), _delayed_tasks_wait),
)

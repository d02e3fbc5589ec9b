"""Cases of attempts: retryable failures are tried again within the budget, permanent ones not."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial


def _failures_are_tried_again(bench: Bench) -> None:
    bench.start_worker()
    for failures in (1, 2, 3):
        bench.submit({"fail": "retryable", "until_attempt": failures}, max_attempts=5)
    bench.submit({"fail": "retryable"}, max_attempts=1)
    bench.submit({"fail": "retryable"}, max_attempts=3)


def _permanent_failures_are_not(bench: Bench) -> None:
    bench.start_worker()
    bench.submit({"fail": "permanent"})
    bench.submit({"fail": "unknown"})
    bench.submit({"return_unserialisable": True})
    bench.submit({"fail": "retryable", "until_attempt": 1},
                 {"fail": "permanent"}, max_attempts=5)


CASES = (
    Trial("conformance", "failures_are_tried_again",
          "Tasks that fail a few times, and tasks that fail until their budget is spent.",
          ("RETRY-01", "RETRY-02", "RETRY-03", "DLV-01"), _failures_are_tried_again),
    Trial("conformance", "permanent_failures_are_not_tried_again",
          "Permanent errors, unexpected ones, and a result that is not JSON.",
          ("RETRY-04", "RETRY-08", "DLQ-01", "DLV-01"), _permanent_failures_are_not),
)

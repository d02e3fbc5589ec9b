"""Cases of dead letters: each failure for good leaves one, with its story."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial


def _failures_for_good_leave_a_letter(bench: Bench) -> None:
    bench.start_worker()
    bench.submit({"fail": "permanent"})
    bench.submit({"fail": "retryable"}, max_attempts=2)
    bench.submit_many(3)


def _at_most_once_is_not_tried_again(bench: Bench) -> None:
    bench.start_worker()
    bench.submit({"kill": True}, max_attempts=1)


CASES = (
    Trial("conformance", "failures_for_good_leave_a_letter",
          "A permanent failure and a spent budget, among tasks that succeed.",
          ("DLQ-01", "DLQ-02", "DLQ-03"), _failures_for_good_leave_a_letter),
    Trial("conformance", "at_most_once_is_not_tried_again",
          "A task with one attempt kills its worker; it is dead-lettered, not started again.",
          ("DLQ-04", "RETRY-01", "DLV-01"), _at_most_once_is_not_tried_again),
)

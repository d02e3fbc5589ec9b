"""Cases of the time to live: what waited too long expires, and what runs is left alone."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import LEASE_MS, Trial

TTL_MS = 1_000


def _late_tasks_expire(bench: Bench) -> None:
    """The first worker comes when the time is over by more than a lease; one task has time."""
    bench.submit_many(3, ttl_ms=TTL_MS)
    bench.submit(ttl_ms=60_000)
    bench.submit(delay_ms=3 * LEASE_MS, ttl_ms=TTL_MS)
    bench.await_quiet(TTL_MS + round(1.2 * LEASE_MS))
    bench.start_worker()


def _running_tasks_do_not_expire(bench: Bench) -> None:
    """One runs on and ends well; one fails after its time and is not tried again."""
    bench.await_ready(bench.start_worker())
    bench.submit({"sleep": 2 * TTL_MS}, ttl_ms=TTL_MS, label="runs on")
    bench.submit({"sleep": 2 * TTL_MS}, {"fail": "retryable"}, ttl_ms=TTL_MS, label="fails late")


def _a_requeue_counts_the_time_anew(bench: Bench) -> None:
    bench.await_ready(bench.start_worker())
    task_id = bench.submit({"fail": "permanent"}, ttl_ms=2 * TTL_MS)
    bench.await_all_terminal([task_id])
    bench.await_quiet(2 * TTL_MS)
    bench.requeue(task_id)
    bench.await_all_terminal([task_id])


def _a_scheduled_task_expires_when_due(bench: Bench) -> None:
    """The queue is paused, so that nothing is taken that could expire only then."""
    bench.await_ready(bench.start_worker())
    bench.pause()
    late = bench.submit(delay_ms=2 * TTL_MS, ttl_ms=TTL_MS)
    bench.await_quiet(3 * TTL_MS)
    bench.look(late)
    bench.resume()


CASES = (
    Trial("conformance", "late_tasks_expire",
          "Queued and delayed tasks whose time to live is over before there is a worker.",
          ("TTL-01", "DLV-01"), _late_tasks_expire, needs=("ttl",), base_delay_ms=2 * LEASE_MS),
    Trial("conformance", "running_tasks_do_not_expire",
          "The time to live ends while two tasks run: one ends well, one fails.",
          ("TTL-01", "TTL-03", "DLV-01"), _running_tasks_do_not_expire, needs=("ttl",),
          base_delay_ms=2 * LEASE_MS, max_delay_ms=2 * LEASE_MS),
    Trial("conformance", "a_requeue_counts_the_time_anew",
          "A dead letter is requeued when its first time to live is over.",
          ("TTL-02", "DLQ-06", "DLV-01"), _a_requeue_counts_the_time_anew,
          needs=("ttl", "dlq")),
    Trial("conformance", "a_scheduled_task_expires_when_due",
          "The time to live of a delayed task ends before it is due, in a pause.",
          ("TTL-05", "DLV-01"), _a_scheduled_task_expires_when_due,
          needs=("ttl", "schedule", "pause")),
)

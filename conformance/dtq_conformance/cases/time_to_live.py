"""Cases of the time to live: what waited too long expires, and what runs is left alone."""

from __future__ import annotations

import time

from dtq_conformance.bench import Bench
from dtq_conformance.evidence import MS
from dtq_conformance.front import inspected, want
from dtq_conformance.trial import LEASE_MS, Trial

TTL_MS, EXPIRED_WITHIN_MS = 1_000, 1_000


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


def _it_expires_when_its_turn_comes(bench: Bench) -> None:
    """It is too old when the one slot is free for it."""
    bench.await_ready(bench.start_worker(1))
    bench.submit({"sleep": 3 * TTL_MS // 2}, label="in front")
    bench.await_witness("start", label="in front")
    late = bench.submit(ttl_ms=TTL_MS // 2)
    turn_ns = bench.await_witness("end", label="in front").at_ns
    bench.await_status(late, "expired")
    took_ms = (time.monotonic_ns() - turn_ns) / MS
    inspected(bench, "the target", ["a task that was too old at its turn"], {
        "took_ms": took_ms, "within a second": took_ms <= EXPIRED_WITHIN_MS},
        want("TTL-04", "a task that was too old at its turn", holds={"within a second": True}))


def _a_running_task_expires_at_its_redelivery(bench: Bench) -> None:
    """Its time ends while it runs; then its worker is killed."""
    holder = bench.start_worker(1)
    task_id = bench.submit({"sleep": 60_000, "until_attempt": 1}, ttl_ms=TTL_MS, label="held")
    bench.await_witness("start", label="held")
    bench.await_quiet(TTL_MS + LEASE_MS)
    running = bench.look(task_id)
    holder.process.kill()
    bench.start_worker(1)
    bench.await_all_terminal([task_id])
    ended = bench.look(task_id)
    inspected(bench, "the target", ["a task that grew too old while it ran"], {
        "while it ran": running and running.status, "in the end": ended and ended.status,
        "executions": len(bench.witnessed("start", "held"))}, want(
            "TTL-06", "a task that grew too old while it ran, and lost its holder then",
            holds={"while it ran": "running", "in the end": "expired", "executions": 1}))


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
    Trial("conformance", "it_expires_when_its_turn_comes",
          "The time to live of a task ends while the one slot is taken.",
          ("TTL-01", "TTL-04"), _it_expires_when_its_turn_comes, needs=("ttl", "status")),
    Trial("conformance", "a_running_task_expires_at_its_redelivery",
          "The time to live of a task ends while it runs; then its worker is killed.",
          ("TTL-06", "DLV-01"), _a_running_task_expires_at_its_redelivery,
          needs=("ttl", "status")),
    Trial("conformance", "a_scheduled_task_expires_when_due",
          "The time to live of a delayed task ends before it is due, in a pause.",
          ("TTL-05", "DLV-01"), _a_scheduled_task_expires_when_due,
          needs=("ttl", "schedule", "pause")),
)

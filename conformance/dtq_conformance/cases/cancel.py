"""Cases of cancelling: what waits, what runs, what is over, and a whole queue."""

from __future__ import annotations

import contextlib

from dtq_conformance.bench import Bench
from dtq_conformance.trial import LEASE_MS, Trial
from dtq_conformance.waiting import WaitedTooLong


def _waiting_tasks_are_cancelled(bench: Bench) -> None:
    """Queued and delayed ones, before there is a worker; one of them twice."""
    waiting = [bench.submit(priority=priority) for priority in (0, 5, 9)]
    waiting += bench.submit_many(2, delay_ms=LEASE_MS // 2)
    for task_id in (*waiting, waiting[0], bench.new_id()):
        bench.cancel(task_id)
    others = bench.submit_many(3)
    bench.start_worker()
    bench.await_all_terminal(others)
    bench.await_quiet(LEASE_MS)


def _after_a_request_no_attempt_begins(bench: Bench) -> None:
    """The requests come while attempt 1 runs: it then fails, ends well, or is lost."""
    bench.start_workers(3, 1)
    bench.submit({"block": 500}, {"fail": "retryable"}, label="fails")
    bench.submit({"block": 500}, label="ends well")
    bench.submit({"block": 10 * LEASE_MS}, label="is lost")
    for label in ("fails", "ends well", "is lost"):
        line = bench.await_witness("start", label=label)
        bench.cancel(line.task_id)
    bench.worker_of(line.pid).process.kill()


def _running_handlers_are_interrupted(bench: Bench) -> None:
    """Three that would work for long, beside one that nobody asks to stop; one is asked twice."""
    bench.start_worker(4)
    bench.submit({"sleep": 2 * LEASE_MS}, label="is left alone")
    tasks = bench.submit_many(3, {"sleep": 4 * LEASE_MS}, label="is asked")
    bench.await_witness("start", label="is asked", count=len(tasks))
    for task_id in (*tasks, tasks[0]):
        bench.cancel(task_id)


def _what_is_sent_again_finds_its_state(bench: Bench) -> None:
    """Cancels of a task that waits and of one that works whatever it is asked, sent twice, and once
    more when that is over; a requeue, sent again while the new life is executed."""
    bench.start_worker(2)
    waits = bench.submit(delay_ms=600_000)
    works = bench.submit({"block": LEASE_MS}, label="works")
    bench.await_witness("start", label="works")
    for task_id in (waits, waits, works, works):
        bench.cancel(task_id)
    bench.await_all_terminal()
    bench.cancel(works)
    dies = bench.submit({"sleep": LEASE_MS}, {"fail": "permanent"}, label="dies")
    bench.await_all_terminal()
    bench.requeue(dies)
    with contextlib.suppress(WaitedTooLong):  # then the requeue was not done, which others judge
        bench.await_witness("start", label="dies", count=2,
                            limit_s=bench.timing.recovery_ms / 1000)
    bench.requeue(dies)


def _a_retry_that_waits_is_cancelled(bench: Bench) -> None:
    bench.start_worker()
    task_id = bench.submit({"fail": "retryable"}, label="fails")
    bench.await_status(task_id, "retrying")
    bench.cancel(task_id)
    bench.await_quiet(4 * bench.timing.base_delay_ms)


def _a_purge_cancels_what_waits(bench: Bench) -> None:
    bench.start_worker(concurrency=1)
    bench.submit({"sleep": 2 * LEASE_MS}, label="runs", priority=9)
    bench.await_witness("start", label="runs")
    for task_id in (*bench.submit_many(4), *bench.submit_many(2, delay_ms=3 * LEASE_MS // 2)):
        bench.look(task_id)
    bench.purge()
    bench.await_quiet(2 * LEASE_MS)


CASES = (
    Trial("conformance", "waiting_tasks_are_cancelled",
          "Queued and delayed tasks are cancelled before there is a worker, one of them twice.",
          ("CANCEL-01", "CANCEL-08", "DLV-01"), _waiting_tasks_are_cancelled, needs=("cancel",),
          snapshots=True),
    Trial("conformance", "after_a_request_no_attempt_begins",
          "Three running tasks are asked to be cancelled; one fails, one loses its worker, one "
          "ends well.",
          ("CANCEL-05", "CANCEL-06", "DLV-01"), _after_a_request_no_attempt_begins,
          needs=("cancel", "retry")),
    Trial("conformance", "running_handlers_are_interrupted",
          "Three tasks that would run for long are asked to be cancelled, beside one that is not.",
          ("CANCEL-03", "DLV-01"), _running_handlers_are_interrupted,
          needs=("cancel", "handlers", "status")),
    Trial("conformance", "what_is_sent_again_finds_its_state",
          "Cancels and a requeue are sent again, of tasks that wait, run, and are over.",
          ("DLV-36", "CANCEL-08", "DLQ-08", "DLV-01"), _what_is_sent_again_finds_its_state,
          needs=("cancel", "dlq", "status", "schedule")),
    Trial("conformance", "a_retry_that_waits_is_cancelled",
          "A task that waits for its second attempt is cancelled.",
          ("CANCEL-01", "DLV-01"), _a_retry_that_waits_is_cancelled, needs=("cancel", "retry")),
    Trial("conformance", "a_purge_cancels_what_waits",
          "A queue with one running, four queued and two delayed tasks is purged.",
          ("CANCEL-09", "DLV-01"), _a_purge_cancels_what_waits, needs=("cancel",),
          snapshots=True),
)

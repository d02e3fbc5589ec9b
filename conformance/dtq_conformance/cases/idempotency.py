"""Cases of idempotency keys: a key has one task, while that is unfinished and afterwards."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

from dtq_conformance.bench import Bench
from dtq_conformance.cases.submission import send_again
from dtq_conformance.trial import LEASE_MS, Trial

CALLERS = 4


def _a_key_has_one_task(bench: Bench) -> None:
    """Submitted by several callers at once, then while the task runs, then when it is over."""
    bench.start_worker()
    ids = [bench.new_id() for _ in range(CALLERS)]

    def submit(task_id: str) -> None:
        with contextlib.closing(bench.open_target(bench.lab.broker.url)) as caller:
            bench.submit({"sleep": 600}, task_id=task_id, label="holds the key", through=caller,
                         idempotency_key="order-7")

    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(submit, ids))
    held = bench.await_witness("start", label="holds the key").task_id
    bench.submit({"sleep": 600}, idempotency_key="order-7")
    send_again(bench, [held])
    bench.await_all_terminal([held])
    bench.submit({"sleep": 1}, idempotency_key="order-7")
    send_again(bench, [held])


def _an_unfinished_task_keeps_its_key(bench: Bench) -> None:
    """The task runs longer than a key outlives its task: while it is unfinished, it is its own."""
    bench.start_worker()
    bench.submit({"sleep": round(2.2 * LEASE_MS)}, label="long", idempotency_key="order-8")
    line = bench.await_witness("start", label="long")
    while time.monotonic_ns() < line.at_ns + round(1.8 * LEASE_MS) * 1_000_000:
        bench.submit(idempotency_key="order-8")
        bench.await_quiet(200)
    bench.await_all_terminal([line.task_id])


def _a_requeue_looks_at_the_key(bench: Bench) -> None:
    """The key of a dead letter was forgotten and used again: its task may not come back while
    the other one is unfinished."""
    bench.start_worker()
    dead = bench.submit({"fail": "permanent"}, idempotency_key="order-9")
    bench.await_all_terminal([dead])
    bench.look(dead)
    bench.await_quiet(bench.timing.key_ms + 1_000)
    bench.submit({"sleep": round(1.5 * LEASE_MS)}, idempotency_key="order-9")
    bench.requeue(dead)


CASES = (
    Trial("conformance", "a_key_has_one_task",
          "One key, submitted by several callers at once, while its task runs and afterwards.",
          ("IDEM-03", "IDEM-04", "IDEM-05", "IDEM-10", "DLV-01"), _a_key_has_one_task,
          needs=("idempotency",)),
    Trial("conformance", "an_unfinished_task_keeps_its_key",
          "A task that runs for longer than its key would be remembered after its end.",
          ("IDEM-03", "IDEM-05", "DLV-01"), _an_unfinished_task_keeps_its_key,
          needs=("idempotency",), key_ms=1_000),
    Trial("conformance", "a_requeue_looks_at_the_key",
          "A dead letter's key was forgotten and is another task's now; it is requeued.",
          ("IDEM-05", "IDEM-15", "DLQ-08"), _a_requeue_looks_at_the_key,
          needs=("idempotency", "dlq"), key_ms=1_000),
)

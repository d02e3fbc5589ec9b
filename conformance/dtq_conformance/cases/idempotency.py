"""Cases of idempotency keys: a key has one task, while that is unfinished and afterwards."""

from __future__ import annotations

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

from dtq_conformance.bench import Bench
from dtq_conformance.cases.submission import send_again
from dtq_conformance.front import inspected, want
from dtq_conformance.operation import Operation
from dtq_conformance.target import Submission
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


def _a_vanished_task_frees_its_key(bench: Bench) -> None:
    """Two tasks that are no part of the history take a key each; one waits, one is cancelled. The
    harness deletes what there is of them but for their keys."""
    client, prefix = bench.keyspace.client, bench.keyspace.prefix
    for key in ("waited", "cancelled"):
        gone = Submission(task_id=bench.new_id(), payload={"steps": [], "label": "vanished"},
                          idempotency_key=key)
        bench.target.submit(gone)
        if key == "cancelled":
            bench.target.cancel(gone.task_id)  # type: ignore[attr-defined]
            client.delete(f"{prefix}task:{gone.task_id}")
        else:
            bench.keyspace.delete_task(gone.task_id)
        new = bench.submit({"sleep": 10}, idempotency_key=key)
        submitted = next(each for each in reversed(bench.records) if isinstance(each, Operation))
        names = json.loads(client.get(f"{prefix}idempotency:default:{key}") or b"{}").get("task_id")
        inspected(bench, "the broker", [f"the key of a task that {key} and vanished"], {
            "outcome": submitted.outcome, "duplicate": submitted.answer.get("duplicate", False),
            "names": names, "vanished": gone.task_id},
            want("IDEM-07", "a submission of the key of a vanished task",
                 holds={"outcome": "ok", "duplicate": False, "names": new}))
    bench.start_worker()


def _another_tasks_key_is_left_alone(bench: Bench) -> None:
    """Tasks with ends of every sort, whose keys the harness has made another task's by then."""
    client = bench.keyspace.client
    ids = {name: bench.submit(*steps, idempotency_key=name) for name, steps in (
        ("succeeded", []), ("dead-lettered", [{"fail": "permanent"}]),
        ("retried", [{"fail": "retryable", "until_attempt": 1}]))}
    ids["cancelled"] = bench.submit(delay_ms=600_000, idempotency_key="cancelled")
    ids["expired"] = bench.submit(delay_ms=200, ttl_ms=100, idempotency_key="expired")
    record = json.dumps({"task_id": bench.new_id(), "state": "processing", "updated_at": 0})
    keys = {name: f"{bench.keyspace.prefix}idempotency:default:{name}" for name in ids}
    for key in keys.values():
        client.set(key, record)
    bench.cancel(ids["cancelled"])
    bench.start_worker()
    bench.await_all_terminal()
    for name, key in keys.items():
        inspected(bench, "the broker", [f"the key of a {name} task"], {
            "record": (client.get(key) or b"").decode(), "expires": client.pttl(key) >= 0},
            want("IDEM-12", "a key that was made another task's before its task ended",
                 holds={"record": record, "expires": False}))
        client.delete(key)


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
    Trial("conformance", "a_vanished_task_frees_its_key",
          "A key is submitted whose task is gone: one that waited, and one that was cancelled.",
          ("IDEM-07", "DLV-01"), _a_vanished_task_frees_its_key,
          needs=("redis-schema", "idempotency", "cancel")),
    Trial("conformance", "another_tasks_key_is_left_alone",
          "Tasks end in every way, and their keys are another task's by then.",
          ("IDEM-12", "DLV-01"), _another_tasks_key_is_left_alone,
          needs=("redis-schema", "idempotency", "retry", "schedule", "cancel", "ttl", "dlq")),
)

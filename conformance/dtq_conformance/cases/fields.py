"""Cases of fields: limits and defaults of a submission, and what a task shows in its life."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from dtq_conformance.bad_requests import BAD_BODIES
from dtq_conformance.bench import Bench
from dtq_conformance.exchange import place
from dtq_conformance.front import Api, api_of, want
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong

PAYLOAD_BYTES = 1_000
METADATA_BYTES = 4_096
LATER_MS = 600_000
RETRY_MS = 2_000
MESSAGE_LENGTH = 500

CLAUSE_OF = {"payload": "TASK-08", "metadata": "TASK-09", "time to live": "TTL-07"}
"""What a bad body is about, by what its name says."""


def _limits_and_defaults(bench: Bench) -> None:
    """Submissions with as little as possible, at the limits, and beyond them."""
    with api_of(bench) as api:
        for told, body, status, code in BAD_BODIES:
            clause = next((CLAUSE_OF[each] for each in CLAUSE_OF if each in told), None)
            if clause and status == 400:
                api.post("/tasks", None, want(clause, told, status, code=code), raw=body)
        for ttl in ("0", "-1", "1e999", '"soon"', "null", "true"):
            raw = f'{{"task_type":"probe_task","metadata":{{"ttl_seconds":{ttl}}}}}'
            api.post("/tasks", None, want("TTL-07", f"a time to live of {ttl}", 400,
                                          code="INVALID_TASK"), raw=raw.encode())
        for extra, expected in ((0, want("TASK-07", "a payload at the limit", 202)),
                                (1, want("TASK-07", "a payload of a byte more", 413,
                                         code="PAYLOAD_TOO_LARGE"))):
            _submit(api, {"payload": _of_size(PAYLOAD_BYTES + extra)}, expected)
        for extra, expected in ((0, want("TASK-09", "metadata at the limit", 202)),
                                (1, want("TASK-09", "metadata of a byte more", 400,
                                         code="INVALID_TASK"))):
            _submit(api, {"metadata": _of_size(METADATA_BYTES + extra)}, expected)
        api.post("/tasks", {"task_type": "nobodys_task"}, want(
            "TASK-10", "a task type without a handler", 400, code="UNKNOWN_TASK_TYPE"))
        task_id = _submit(api, {})
        api.get(f"/tasks/{task_id}", want("TASK-06", "a look at a task of defaults", 200, holds={
            "payload": {}, "queue": "default", "priority": 5, "max_attempts": 5,
            "timeout_ms": 30_000, "metadata": {}}))
        bench.purge()


def _of_size(size: int) -> dict[str, str]:
    """An object of this many bytes as compact UTF-8 JSON; every second one takes two."""
    empty = len(json.dumps({"x": ""}, separators=(",", ":")))
    half, odd = divmod(size - empty, 2)
    return {"x": "ü" * half + "a" * odd}


def _submit(api: Api, fields: dict[str, Any], *expects: Any) -> str:
    answer = api.post("/tasks", {"task_type": "probe_task", **fields}, *expects)
    return str(place(answer.body, "task_id"))


def _a_task_shows_its_life(bench: Bench) -> None:
    """A task that waits, fails, waits again and succeeds; one that is delayed; one that is dead."""
    with api_of(bench) as api:
        delayed = bench.submit(through=api, delay_ms=1_000)
        created = place(api.get(f"/tasks/{delayed}").body, "created_at")
        api.get(f"/tasks/{delayed}", want("TASK-12", "a look at a delayed task", 200, holds={
            "created_at": created, "available_at": int(created) + 1_000}), want(
                "TASK-11", "a look at a delayed task", 200, holds={"attempt": 1}))
        worker = bench.start_worker()
        tried = bench.submit({"fail": "retryable", "until_attempt": 1}, {"sleep": 700},
                             through=api, label="tried")
        bench.await_status(tried, "retrying")
        api.get(f"/tasks/{tried}", want(
            "TASK-13", "a look after a failed attempt", 200,
            holds={"retryable": True, "worker_id": worker.worker_id},
            has=["started_at", "finished_at", "duration_ms", "error_class", "error_message",
                 "retry_delay_ms"]))
        with contextlib.suppress(WaitedTooLong):  # whoever judges sees that it never came
            bench.await_witness("start", label="tried", count=2,
                                limit_s=bench.timing.recovery_ms / 1000)
        api.get(f"/tasks/{tried}", want("TASK-11", "a look at a second attempt", 200, holds={
            "attempt": 2}))
        long = "long " * MESSAGE_LENGTH
        wordy = bench.submit({long: 1}, through=api, max_attempts=1)
        bench.await_all_terminal()
        api.get(f"/tasks/{tried}", want("SCHED-06", "a look at a retry that succeeded", 200,
                                        holds={"attempt": 2, "status": "succeeded"}))
        api.get(f"/tasks/{delayed}", want("SCHED-06", "a look at a delayed task that ran", 200,
                                          holds={"attempt": 1}))
        seen = api.get(f"/tasks/{wordy}", want("TASK-14", "a look at a wordy failure", 200,
                                               has=["error_message"]))
        message = str(place(seen.body, "error_message"))
        short = "".join(filter(str.isprintable, message))[:MESSAGE_LENGTH]
        api.get(f"/tasks/{wordy}", want("TASK-14", "a message of at most 500 characters", 200,
                                        holds={"error_message": short}))


def _dead_letters_go_by_their_task(bench: Bench) -> None:
    """Letters are looked at, requeued, discarded and purged by the ids of their tasks."""
    bench.start_worker()
    with api_of(bench) as api:
        first, second, third = (bench.submit({"fail": "permanent"}, through=api) for _ in range(3))
        bench.await_all_terminal()
        api.get(f"/dlq/{first}", want("DLQ-05", "a look at a letter", 200, holds={
            "task_id": first}))
        api.demand("requeue", f"/dlq/{first}/requeue", first, want("DLQ-05", "a requeue", 200))
        bench.await_all_terminal([first])
        api.get(f"/tasks/{first}", want("DLQ-07", "a look at a requeued task", 200, holds={
            "attempt": 1}, has=["metadata.previous_attempts.0"]))
        api.demand("discard", f"/dlq/{second}/discard", second, want("DLQ-05", "a discard", 200))
        api.get(f"/tasks/{second}", want("DLQ-10", "a look at a discarded task", 200, holds={
            "status": "dead_lettered", "metadata.discarded": True}))
        api.get(f"/dlq/{second}", want("DLQ-10", "a look at a discarded letter", 404,
                                       code="TASK_NOT_FOUND"))
        api.demand("purge_dead_letters", "/dlq/purge", None, want(
            "DLQ-11", "a purge of two letters", 200, holds={"purged": 2}))
        api.get(f"/tasks/{third}", want("DLQ-11", "a look at a purged task", 200, holds={
            "status": "dead_lettered", "metadata.discarded": True}))


def _a_key_is_its_queues(bench: Bench) -> None:
    """One key in two queues, with another payload, and while the queue is full."""
    bench.start_worker()
    with api_of(bench) as api:
        first = bench.submit(through=api, idempotency_key="order-7")
        bench.await_all_terminal([first])
        again = {"idempotency_key": "order-7", "payload": {"steps": [], "label": "another"}}
        _submit(api, again, want("IDEM-09", "a key with another payload", 200, holds={
            "task_id": first, "duplicate": True, "payload.label": ""}))
        other = _submit(api, {**again, "queue": "other", "delay_ms": LATER_MS}, want(
            "IDEM-02", "the key in another queue", 202, holds={"status": "pending"}))
        api.post(f"/tasks/{other}/cancel", None, want("IDEM-02", "its cancel", 202))
        waiting = [_submit(api, {"delay_ms": LATER_MS}) for _ in range(2)]
        _submit(api, {"delay_ms": LATER_MS}, want(
            "IDEM-06", "a submission to the full queue", 429, code="QUEUE_FULL"))
        _submit(api, again, want("IDEM-06", "a duplicate while the queue is full", 200, holds={
            "task_id": first, "duplicate": True}))
        for task_id in waiting:
            api.post(f"/tasks/{task_id}/cancel")


def _nobody_handles_it(bench: Bench) -> None:
    """It is submitted where nobody knows the handlers, and its worker has none for it."""
    bench.start_worker()
    task_id = bench.submit(task_type="nobodys_task")
    bench.await_all_terminal()
    with api_of(bench) as api:
        api.get(f"/tasks/{task_id}", want(
            "RETRY-09", "a look at a task without a handler", 200, holds={
                "status": "dead_lettered", "attempt": 1,
                "error_message": "unknown_task_type:nobodys_task"}))


def _without_dead_letters(bench: Bench) -> None:
    """One fails permanently, one fails its last attempt."""
    bench.start_worker()
    ids = [bench.submit({"fail": "permanent"}), bench.submit({"fail": "retryable"}, max_attempts=2)]
    bench.await_all_terminal()
    with api_of(bench) as api:
        for task_id in ids:
            api.get(f"/tasks/{task_id}", want(
                "RETRY-10", "a look at a task that failed for good", 200,
                holds={"status": "failed"}))
        api.get("/dlq", want("RETRY-10", "a list of dead letters", 200, holds={"dead_letters": []}))


CASES = (
    Trial("conformance", "limits_and_defaults",
          "Submissions with as little as possible, at the limits, and beyond them.",
          ("TASK-05", "TASK-06", "TASK-07", "TASK-08", "TASK-09", "TASK-10", "TTL-07"),
          _limits_and_defaults, needs=("http", "submission", "cancel"),
          settings={"DTQ_MAX_PAYLOAD_BYTES": str(PAYLOAD_BYTES)}),
    Trial("conformance", "a_task_shows_its_life",
          "Tasks are looked at while they wait, between two attempts, and when they are over.",
          ("TASK-11", "TASK-12", "TASK-13", "TASK-14", "STATE-04", "SCHED-06", "DLV-01"),
          _a_task_shows_its_life, needs=("http", "status", "retry", "schedule"),
          base_delay_ms=RETRY_MS, max_delay_ms=RETRY_MS),
    Trial("conformance", "nobody_handles_it",
          "A task whose type has no handler in its worker.",
          ("RETRY-09", "DLV-01"), _nobody_handles_it, needs=("http", "retry", "dlq")),
    Trial("conformance", "without_dead_letters",
          "Tasks fail for good while dead-lettering is off.",
          ("RETRY-10", "DLV-01"), _without_dead_letters, needs=("http", "dlq"),
          settings={"DTQ_DLQ_ENABLED": "false"}),
    Trial("conformance", "dead_letters_go_by_their_task",
          "Dead letters are looked at, requeued, discarded and purged.",
          ("DLQ-05", "DLQ-07", "DLQ-10", "DLQ-11", "DLV-01"), _dead_letters_go_by_their_task,
          needs=("http", "dlq")),
    Trial("conformance", "a_key_is_its_queues",
          "One key in two queues, with another payload, and while the queue is full.",
          ("IDEM-02", "IDEM-06", "IDEM-09", "DLV-01"), _a_key_is_its_queues,
          needs=("http", "idempotency", "backpressure"), settings={"DTQ_MAX_QUEUE_DEPTH": "2"}),
)

"""Cases of the HTTP API: every route, every kind of refusal, and what it says of Redis."""

from __future__ import annotations

import contextlib

from dtq_conformance.bad_requests import BAD_BODIES, BAD_REQUESTS
from dtq_conformance.bench import Bench
from dtq_conformance.exchange import Exchange
from dtq_conformance.front import Api, api_of, broker_away, want
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

LATER_MS = 600_000
"""So long that a task which waits for it never starts in a trial."""

READY_AGAIN_S = 5.0
EVERY_TASK = ["task_id", "queue", "task_type", "payload", "metadata", "priority", "max_attempts",
              "timeout_ms", "status", "attempt", "created_at", "available_at"]
ENDED = ["worker_id", "started_at", "finished_at", "duration_ms"]
QUEUE = ["queue", "depth", "pending", "paused", "retry_scheduled", "dlq_depth", "workers_active"]
WORKER = ["worker_id", "incarnation", "hostname", "started_at", "last_heartbeat",
          "heartbeat_interval_s", "active_tasks", "concurrency", "tasks_processed", "tasks_failed",
          "tasks_retried", "status"]


def _every_route_answers(bench: Bench) -> None:
    """Each route is asked once at least, while its answer is known."""
    worker = bench.start_worker()
    with api_of(bench) as api:
        done = bench.submit({"return": {"n": 7}}, through=api)
        dead = bench.submit({"fail": "permanent"}, through=api, priority=9)
        bench.await_all_terminal([done, dead])
        later = bench.submit(through=api, delay_ms=LATER_MS)
        _tasks_show_everything(api, done, dead, later)
        _queues_and_workers_show_themselves(api, worker.worker_id)
        api.demand("cancel", f"/tasks/{later}/cancel", later, want(
            "API-08", "a cancel of a delayed task", 202,
            holds={"task_id": later, "status": "cancelled"}))
        api.get("/queues/default", want(
            "API-09", "a look at the queue after the cancel", 200,
            holds={"depth": 0, "retry_scheduled": 0}))
        _dead_letters_are_administered(bench, api, dead)
        api.get("//health", want("API-12", "/health", 200, has=["status"]))
        api.get("//metrics", want("API-01", "/metrics", 200, says=["dtq_tasks_submitted_total"]))
        api.get("//openapi.json", want("API-16", "the document", 200, has=["paths"]))


def _tasks_show_everything(api: Api, done: str, dead: str, later: str) -> None:
    api.get(f"/tasks/{done}", want(
        "API-06", "a look at a succeeded task", 200, has=[*EVERY_TASK, *ENDED],
        holds={"task_id": done, "status": "succeeded", "result": {"n": 7}, "queue": "default",
               "priority": 5, "max_attempts": 5, "attempt": 1, "task_type": "probe_task",
               "payload.label": ""}))
    api.get(f"/tasks/{dead}", want(
        "API-06", "a look at a dead-lettered task", 200,
        has=[*EVERY_TASK, *ENDED, "error_message"],
        holds={"status": "dead_lettered", "retryable": False, "priority": 9,
               "error_class": "PermanentError"}))
    api.get(f"/tasks/{later}", want("API-06", "a look at a delayed task", 200, has=EVERY_TASK,
                                    holds={"status": "pending", "attempt": 1}))
    api.get("/tasks", want("API-07", "a list of all tasks", 200, holds={
        "tasks.0.task_id": later, "tasks.1.task_id": dead, "tasks.2.task_id": done}))


def _queues_and_workers_show_themselves(api: Api, worker_id: str) -> None:
    api.get("/queues", want("API-09", "a list of queues", 200, holds={
        "queues.0.queue": "default"}, has=[f"queues.0.{name}" for name in QUEUE]))
    api.get("/queues/default", want("API-09", "a look at a queue", 200, has=QUEUE, holds={
        "depth": 1, "pending": 0, "paused": False, "retry_scheduled": 1, "dlq_depth": 1,
        "workers_active": 1}))
    api.get("/workers", want("API-10", "a list of workers", 200, holds={
        "workers.0.worker_id": worker_id}))
    api.get(f"/workers/{worker_id}", want("API-10", "a look at a worker", 200, has=WORKER, holds={
        "worker_id": worker_id, "concurrency": 4}))
    api.demand("pause", "/queue/default/pause", None, want(
        "API-11", "a pause", 200, holds={"queue": "default", "paused": True}))
    api.get("/queues/default", want("API-09", "a look at a paused queue", 200,
                                    holds={"paused": True}))
    api.demand("resume", "/queue/default/resume", None, want(
        "API-11", "a resume", 200, holds={"queue": "default", "paused": False}))


def _dead_letters_are_administered(bench: Bench, api: Api, dead: str) -> None:
    api.get("/dlq", want("API-11", "a list of dead letters", 200, holds={
        "dead_letters.0.task_id": dead}))
    api.get(f"/dlq/{dead}", want("API-11", "a look at a dead letter", 200, holds={
        "task_id": dead, "attempts_made": 1, "last_error_class": "PermanentError"}))
    api.demand("requeue", f"/dlq/{dead}/requeue", dead, want(
        "API-11", "a requeue", 200, holds={"task_id": dead, "status": "queued"}))
    bench.await_all_terminal([dead])
    api.demand("discard", f"/dlq/{dead}/discard", dead, want(
        "API-11", "a discard", 200, holds={"task_id": dead, "status": "dead_lettered"}))
    bench.await_all_terminal([bench.submit({"fail": "permanent"}, through=api)])
    api.demand("purge_dead_letters", "/dlq/purge", None, want(
        "API-11", "a purge of the dead letters", 200, holds={"purged": 1}))
    api.get("/dlq", want("API-11", "a list of dead letters after the purge", 200,
                         holds={"dead_letters": []}))


def _what_is_wrong_is_refused(bench: Bench) -> None:
    """Bodies that are no submission, parameters outside their limits, what does not exist."""
    with api_of(bench) as api:
        for told, body, status, code in BAD_BODIES:
            api.post("/tasks", None, want("API-03", told, status, code=code), raw=body)
        api.get("/tasks", want("API-07", "a list after refusals only", 200, holds={"tasks": []}))
        for method, path, status, code in BAD_REQUESTS:
            api.ask(method, path, None, want("API-03", f"{method} {path}", status, code=code))
        api.get("/tasks?limit=10000", want("API-07", "the largest limit", 200))
        api.get("//health", want("API-14", "a request with an id", 200),
                headers={"X-Request-ID": "order-7.retry_2"})
        queued = bench.submit(through=api, delay_ms=LATER_MS)
        for what in ("requeue", "discard"):
            api.demand(what, f"/dlq/{queued}/{what}", queued, want(
                "API-03", f"a {what} of a task that waits", 409, code="NOT_REQUEUEABLE",
                holds={"status": "pending"}))
        api.demand("cancel", f"/tasks/{queued}/cancel", queued, want("API-08", "a cancel", 202))


def _a_batch_is_answered_item_by_item(bench: Bench) -> None:
    """Good items, one that is refused, one that was sent before."""
    bench.start_worker()
    with api_of(bench) as api:
        before = bench.submit(through=api)
        bench.await_all_terminal([before])
        good = [{"task_type": "probe_task", "task_id": bench.new_id(),
                 "payload": {"steps": [], "label": ""}, "priority": each} for each in range(3)]
        bad = {"task_type": "probe_task", "task_id": bench.new_id(), "priority": 10}
        items = [good[0], bad, good[1], good[2]]
        answer = api.post("/tasks/batch", {"tasks": items}, want(
            "API-05", "a batch with one bad item", 200, holds={
                "outcomes.0.status": 202, "outcomes.0.body.task_id": good[0]["task_id"],
                "outcomes.1.status": 400, "outcomes.1.body.code": "INVALID_TASK",
                "outcomes.2.status": 202, "outcomes.2.body.task_id": good[1]["task_id"],
                "outcomes.3.body.task_id": good[2]["task_id"]}))
        _note_batch(api, items, answer)
        api.get(f"/tasks/{bad['task_id']}", want("API-05", "the refused item", 404,
                                                 code="TASK_NOT_FOUND"))
        for told, body in (("an empty batch", []), ("a batch that is no list", "x"),
                           ("a batch of 1001", [bad] * 1001)):
            api.post("/tasks/batch", {"tasks": body}, want("API-05", told, 400))


def _note_batch(api: Api, items: list[dict[str, object]], answer: Exchange) -> None:
    outcomes = answer.body.get("outcomes", []) if isinstance(answer.body, dict) else []
    for fields, outcome in zip(items, outcomes, strict=False):
        api.note(fields, outcome.get("status", 0), outcome.get("body", {}), answer.asked_ns)


def _lists_and_cancels_go_by_the_state(bench: Bench) -> None:
    """Tasks in two queues and four states are listed, and cancelled."""
    with api_of(bench) as api:
        other = api.post("/tasks", {"task_type": "probe_task", "queue": "other"}, want(
            "API-02", "a submission to another queue", 202, has=["task_id"],
            holds={"status": "queued"}))
        elsewhere = other.body["task_id"] if isinstance(other.body, dict) else ""
        bench.start_worker()
        done = bench.submit(through=api)
        bench.await_all_terminal([done])
        running = bench.submit({"sleep": 4_000}, label="runs", through=api)
        with contextlib.suppress(WaitedTooLong):  # whoever judges sees that it never came
            bench.await_witness("start", label="runs", limit_s=bench.timing.recovery_ms / 1000)
        later = bench.submit(through=api, delay_ms=LATER_MS)
        for told, query, ids in (
                ("of the other queue", "queue=other", [elsewhere]),
                ("of succeeded tasks", "status=succeeded", [done]),
                ("of the newest two of a queue", "queue=default&limit=2", [later, running]),
                ("of pending tasks of the other queue", "queue=other&status=pending", [])):
            api.get(f"/tasks?{query}", want("API-07", f"a list {told}", 200, holds={
                **{f"tasks.{place}.task_id": each for place, each in enumerate(ids)},
                **({} if ids else {"tasks": []})}))
        for told, task_id, status, code in (
                ("that waits in the schedule", later, 202, ""),
                ("that runs", running, 409, "CANCEL_REQUESTED"),
                ("that has ended", done, 410, "TASK_TERMINAL"),
                ("that nobody knows", bench.new_id(), 404, "TASK_NOT_FOUND")):
            api.demand("cancel", f"/tasks/{task_id}/cancel", task_id, want(
                "API-08", f"a cancel of a task {told}", status, code=code))
        api.post(f"/tasks/{elsewhere}/cancel", None, want(
            "API-08", "a cancel of a task that waits in its queue", 202,
            holds={"status": "cancelled"}))


def _a_key_in_the_header_is_the_key(bench: Bench) -> None:
    """The header names one key, the body another."""
    bench.start_worker()
    with api_of(bench) as api:
        first = bench.submit(through=api, idempotency_key="from-the-body")
        bench.await_all_terminal([first])
        body = {"task_type": "probe_task", "idempotency_key": "from-the-body",
                "payload": {"steps": [], "label": ""}}
        api.post("/tasks", body, want(
            "API-02", "a submission of the key of a finished task", 200, holds={
                "task_id": first, "duplicate": True, "status": "succeeded"}, has=EVERY_TASK))
        fresh = {**body, "task_id": bench.new_id()}
        answer = api.post("/tasks", fresh, want(
            "IDEM-01", "a submission whose header names a new key and whose body a used one", 202,
            holds={"task_id": fresh["task_id"]}), headers={"Idempotency-Key": "from-the-header"})
        api.note({**fresh, "idempotency_key": "from-the-header"}, answer.status or 0, answer.body,
                 answer.asked_ns)
        api.get(f"/tasks/{fresh['task_id']}", want("IDEM-01", "a look at the task", 200, holds={
            "idempotency_key": "from-the-header"}))


def _readiness_is_the_truth(bench: Bench) -> None:
    """The broker answers nobody for a while: the process is healthy, and not ready."""
    bench.await_ready(bench.start_worker())
    with api_of(bench) as api:
        _health(api, "while all is well")
        api.get("//ready", want("API-13", "/ready while all is well", 200))
        with broker_away(bench) as is_away:
            if is_away:
                _health(api, "while Redis is silent")
                api.get("//ready", want("API-13", "/ready while Redis is silent", 503,
                                        code="NOT_READY"))
                api.get("/queues", want("API-03", "a question while Redis is silent", 503))
        with contextlib.suppress(WaitedTooLong):  # then the last answer tells
            wait_for(lambda: api.get("//ready").status == 200, limit_s=READY_AGAIN_S,
                     reason="the API to be ready again", every_s=0.2)
        _health(api, "after the outage")
        api.get("//ready", want("API-13", "/ready after the outage", 200))


def _health(api: Api, when: str) -> None:
    api.get("//health", want("API-12", f"/health {when}", 200, has=["status"]))


CASES = (
    Trial("conformance", "every_route_answers",
          "Each route of the HTTP API is asked while its answer is known.",
          ("API-01", "API-02", "API-06", "API-07", "API-08", "API-09", "API-10", "API-11",
           "API-12", "API-14", "API-15", "API-16", "DLV-01"), _every_route_answers,
          needs=("http",)),
    Trial("conformance", "what_is_wrong_is_refused",
          "Bad bodies, bad parameters, unknown routes and ids, wrong methods.",
          ("API-03", "API-04", "API-14", "API-15"), _what_is_wrong_is_refused, needs=("http",)),
    Trial("conformance", "a_batch_is_answered_item_by_item",
          "A batch with good items and a bad one, and batches that are none.",
          ("API-05", "DLV-01", "DLV-09"), _a_batch_is_answered_item_by_item, needs=("http",)),
    Trial("conformance", "lists_and_cancels_go_by_the_state",
          "Tasks in two queues and in four states are listed, and cancelled.",
          ("API-07", "API-08", "DLV-01"), _lists_and_cancels_go_by_the_state, needs=("http",)),
    Trial("conformance", "a_key_in_the_header_is_the_key",
          "A submission names one idempotency key in its header and another in its body.",
          ("IDEM-01", "API-02", "DLV-01"), _a_key_in_the_header_is_the_key,
          needs=("http", "idempotency")),
    Trial("conformance", "readiness_is_the_truth",
          "Redis answers nobody for a while, and the API is asked how it is.",
          ("API-12", "API-13"), _readiness_is_the_truth, needs=("http",)),
)

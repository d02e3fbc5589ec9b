"""What the HTTP API says of itself: the shapes of its answers, and its OpenAPI document.

The schemas are those of the structs that the engine works with, so that no second description of a
task exists. `describe` documents a route; `document` completes what FastAPI has put together.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from dtq_reference.errors import HTTP_STATUS
from dtq_reference.operations import QueueStats, WorkerView
from dtq_reference.task import DeadLetter, Task, TaskRequest

TASK_ID = "0123456789abcdef0123456789abcdef"
BATCH_LIMIT = 1000
RETRY_AFTER_S = 1
"""When a client that was told to come back may do so."""

STATUS = HTTP_STATUS | {"INVALID_REQUEST": 400, "NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405,
                        "INTERNAL_ERROR": 500, "NOT_READY": 503}
"""Every code that the API answers with: those of the engine, and those of HTTP."""


class Accepted(msgspec.Struct, frozen=True):
    """The task was accepted, or was accepted before under the same id."""

    task_id: str
    status: str


class Duplicate(Task, frozen=True, kw_only=True):
    """The stored task of the idempotency key; nothing new was accepted."""

    duplicate: bool = True


class Batch(msgspec.Struct, frozen=True):
    """Submissions, each accepted or refused by itself."""

    tasks: Annotated[list[TaskRequest], msgspec.Meta(min_length=1, max_length=BATCH_LIMIT)]


class Outcome(msgspec.Struct, frozen=True):
    """What a single submission would have been answered with."""

    status: int
    body: dict[str, Any]


class Outcomes(msgspec.Struct, frozen=True):
    """An outcome for each submission, in their order."""

    outcomes: list[Outcome]


class Changed(msgspec.Struct, frozen=True):
    """What was asked for was done; the task's status now."""

    task_id: str
    status: str


class Purged(msgspec.Struct, frozen=True):
    """How many dead letters were thrown away."""

    purged: int


class Paused(msgspec.Struct, frozen=True):
    """Whether workers leave the queue alone."""

    queue: str
    paused: bool


class Tasks(msgspec.Struct, frozen=True):
    """Tasks, newest first."""

    tasks: list[Task]


class Queues(msgspec.Struct, frozen=True):
    """Queues, by name."""

    queues: list[QueueStats]


class Workers(msgspec.Struct, frozen=True):
    """Workers, by id."""

    workers: list[WorkerView]


class DeadLetters(msgspec.Struct, frozen=True):
    """Dead letters, newest first."""

    dead_letters: list[DeadLetter]


class Health(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str


class Error(msgspec.Struct, frozen=True, omit_defaults=True):
    """A refusal: a code for machines, a sentence for people, and what to look for in the log.
    `task_id` or `status` name the task or the status that stands in the way."""

    code: str
    message: str
    request_id: str
    task_id: str | None = None
    status: str | None = None


SHAPES = (Accepted, Duplicate, Batch, Outcomes, Changed, Purged, Paused, Tasks, Queues, Workers,
          DeadLetters, Health, Error)

TASK_EXAMPLE = {"task_id": TASK_ID, "queue": "default", "task_type": "echo_task",
                "payload": {"hello": "world"}, "metadata": {}, "priority": 5, "max_attempts": 5,
                "timeout_ms": 30000, "status": "succeeded", "attempt": 1,
                "created_at": 1767225600000, "available_at": 1767225600000,
                "result": {"hello": "world"}}
REQUEST_EXAMPLE = {"task_type": "echo_task", "payload": {"hello": "world"}}
QUEUE_EXAMPLE = {"queue": "default", "depth": 3, "pending": 1, "paused": False,
                 "retry_scheduled": 1, "dlq_depth": 0, "workers_active": 2}
WORKER_EXAMPLE = {"worker_id": "worker-1a2b3c4d", "incarnation": "5e6f7a8b", "status": "busy",
                  "hostname": "host-1", "started_at": 1767225600000,
                  "last_heartbeat": 1767225605000, "heartbeat_interval_s": 5.0, "active_tasks": 1,
                  "concurrency": 4, "tasks_processed": 7, "tasks_failed": 0, "tasks_retried": 1}
LETTER_EXAMPLE = {"task_id": TASK_ID, "original_queue": "default", "task_type": "echo_task",
                  "payload": {}, "metadata": {}, "attempts_made": 5,
                  "last_error_class": "TimeoutError", "last_error": "30000 ms have passed",
                  "failed_at_ms": 1767225605000, "worker_id": "worker-1a2b3c4d",
                  "retryable": True}

EXAMPLES: dict[str, Any] = {
    "Accepted": {"task_id": TASK_ID, "status": "queued"},
    "Duplicate": {**TASK_EXAMPLE, "duplicate": True},
    "TaskRequest": REQUEST_EXAMPLE,
    "Batch": {"tasks": [REQUEST_EXAMPLE]},
    "Outcomes": {"outcomes": [{"status": 202, "body": {"task_id": TASK_ID, "status": "queued"}}]},
    "Changed": {"task_id": TASK_ID, "status": "cancelled"},
    "Purged": {"purged": 3},
    "Paused": {"queue": "default", "paused": True},
    "Task": TASK_EXAMPLE, "Tasks": {"tasks": [TASK_EXAMPLE]},
    "QueueStats": QUEUE_EXAMPLE, "Queues": {"queues": [QUEUE_EXAMPLE]},
    "WorkerView": WORKER_EXAMPLE, "Workers": {"workers": [WORKER_EXAMPLE]},
    "DeadLetter": LETTER_EXAMPLE, "DeadLetters": {"dead_letters": [LETTER_EXAMPLE]},
    "Health": {"status": "ok"},
}


def describe(*, answers: dict[int, str], codes: tuple[str, ...] = (), body: str = "",
             headers: tuple[str, ...] = (), has_key: bool = False) -> dict[str, Any]:
    """What `add_api_route` is told: the schema of each good status, the refusals by their codes,
    the body and headers that are read, and whether an API key may be asked for."""
    responses: dict[int | str, dict[str, Any]] = {
        status: _holds(schema, EXAMPLES[schema], schema) for status, schema in answers.items()}
    by_status: dict[int, list[str]] = {}
    for code in (*codes, "INTERNAL_ERROR"):
        by_status.setdefault(STATUS[code], []).append(code)
    for status, named in by_status.items():
        example = {"code": named[0], "message": "What happened, and what to do.",
                   "request_id": "5e6f7a8b"}
        responses[status] = _holds("Error", example, " or ".join(named))
    for status in {429, 503} & responses.keys():
        responses[status]["headers"]["Retry-After"] = {
            "description": "Seconds to wait", "schema": {"type": "integer"}}
    extra: dict[str, Any] = {}
    if headers:
        extra["parameters"] = [{"in": "header", "name": name, "schema": {"type": "string"}}
                               for name in headers]
    if body:
        extra["requestBody"] = {"required": True, **_content(body, EXAMPLES[body])}
    if has_key:
        extra["security"] = [{"ApiKey": []}]
    return {"responses": responses, "openapi_extra": extra,
            "status_code": next(iter(answers), 200)}


def _holds(schema: str, example: Any, description: str) -> dict[str, Any]:
    headers = {"X-Request-ID": {"description": "What was asked under this name, or a new one",
                                "schema": {"type": "string"}}}
    return {"description": description, "headers": headers, **_content(schema, example)}


def _content(schema: str, example: Any) -> dict[str, Any]:
    return {"content": {"application/json": {
        "schema": {"$ref": f"#/components/schemas/{schema}"}, "example": example}}}


def document(app: FastAPI, description: str, *, has_key: bool) -> dict[str, Any]:
    """The whole document. FastAPI's own 422 is not in it: a fault in a request is a 400 here."""
    found = get_openapi(title=app.title, version=app.version, description=description,
                        routes=app.routes)
    for path in found["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"] = dict(sorted(operation["responses"].items()))
            if not has_key:
                operation.pop("security", None)
    _, schemas = msgspec.json.schema_components(
        SHAPES, ref_template="#/components/schemas/{name}")
    text = msgspec.json.encode(schemas).decode()
    found["components"] = {
        "schemas": msgspec.json.decode(text.replace(r"\\Z", "$")),  # as JSON Schema spells it
        "securitySchemes": {"ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}}}
    return found

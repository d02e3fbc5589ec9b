"""What the HTTP API says of itself: the shapes of its answers, and its OpenAPI document.

The schemas are those of the structs that the engine works with, so that no second description of a
task exists. `told` notes at a route what it answers; `document` completes what FastAPI has put
together from that.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from dtq_reference.errors import HTTP_STATUS
from dtq_reference.operations import QueueStats, WorkerView
from dtq_reference.task import DeadLetter, Task, TaskRequest

BATCH_LIMIT = 1000

STATUS = HTTP_STATUS | {"INVALID_REQUEST": 400, "NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405,
                        "INTERNAL_ERROR": 500, "NOT_READY": 503}
"""Every code that the API answers with: those of the engine, and those of HTTP."""

COME_BACK = (429, 503)
"""Whoever is answered so is told in Retry-After when to ask again."""


class Accepted(msgspec.Struct, frozen=True):
    """The task that was accepted or changed, and its status now."""

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
    body: Any


class Purged(msgspec.Struct, frozen=True):
    """How many dead letters were thrown away."""

    purged: int


class Paused(msgspec.Struct, frozen=True):
    """Whether workers leave the queue alone."""

    queue: str
    paused: bool


class Health(msgspec.Struct, frozen=True):
    """`ok`, or `ready`."""

    status: str


class Error(msgspec.Struct, frozen=True, omit_defaults=True):
    """A refusal: a code for machines, a sentence for people, and what to look for in the log.
    `task_id` or `status` name the task or the status that stands in the way."""

    code: str
    message: str
    request_id: str
    task_id: str | None = None
    status: str | None = None


ID, NOW_MS = "0123456789abcdef0123456789abcdef", 1767225600000
REQUEST = TaskRequest(task_type="echo_task", payload={"hello": "world"}, task_id=ID)
TASK: dict[str, Any] = {
    "task_id": ID, "queue": "default", "task_type": "echo_task", "payload": {"hello": "world"},
    "metadata": {}, "priority": 5, "max_attempts": 5, "timeout_ms": 30000, "status": "succeeded",
    "attempt": 1, "created_at": NOW_MS, "available_at": NOW_MS, "result": {"hello": "world"}}
QUEUE = QueueStats("default", 3, 1, False, 1, 0, 2)
WORKER = WorkerView(worker_id="worker-1a2b3c4d", incarnation="5e6f7a8b", status="busy",
                    started_at=NOW_MS, last_heartbeat=NOW_MS + 5000, concurrency=4)
LETTER = DeadLetter(task_id=ID, original_queue="default", task_type="echo_task", payload={},
                    metadata={}, attempts_made=5, last_error_class="TimeoutError", retryable=True,
                    last_error="30000 ms have passed", failed_at_ms=NOW_MS, worker_id="worker-1")
EXAMPLES: dict[str, msgspec.Struct] = {type(each).__name__: each for each in (
    REQUEST, Batch([REQUEST]), Accepted(ID, "queued"), Duplicate(**TASK),
    Outcome(202, Accepted(ID, "queued")), Purged(3), Paused("default", True), Task(**TASK), QUEUE,
    WORKER, LETTER, Health("ok"), Error("INVALID_TASK", "priority: expected `int` <= 9.", "5e6f"))}
"""An example of each shape; these are the schemas of the document."""


def told(answers: dict[int, str], codes: str = "", *, body: str = "") -> dict[str, Any]:
    """What a route is declared with: the shape of each good status, the codes of its refusals, and
    the shape of the body that it reads. `tasks: Task` is an object with a list of such."""
    extra = {"requestBody": {"required": True, **_content(body)}} if body else None
    return {"responses": {status: {"description": shape} for status, shape in answers.items()}
            | refusals(codes), "status_code": next(iter(answers), 200), "openapi_extra": extra}


def refusals(codes: str) -> dict[int | str, dict[str, Any]]:
    """The codes by their status."""
    found: dict[int | str, list[str]] = {}
    for code in codes.split():
        found.setdefault(STATUS[code], []).append(code)
    return {status: {"description": " or ".join(alike)} for status, alike in found.items()}


def _content(shape: str) -> dict[str, Any]:
    field, _, name = shape.rpartition(": ")
    schema: dict[str, Any] = {"$ref": f"#/components/schemas/{name}"}
    example = msgspec.to_builtins(EXAMPLES[name])
    if field:
        schema = {"type": "object", "required": [field],
                  "properties": {field: {"type": "array", "items": schema}}}
        example = {field: [example]}
    return {"content": {"application/json": {"schema": schema, "example": example}}}


def document(app: FastAPI, description: str, *, has_key: bool) -> dict[str, Any]:
    """The whole document. FastAPI's own 422 is not in it: a fault in a request is a 400 here."""
    found = get_openapi(title=app.title, version=app.version, description=description,
                        routes=app.routes)
    for operation in (each for path in found["paths"].values() for each in path.values()):
        operation["responses"].pop("422", None)
        operation["responses"] = dict(sorted(operation["responses"].items()))
        for status, response in operation["responses"].items():
            shape = "Error" if status >= "400" else response["description"]
            names = ["X-Request-ID", "Retry-After"][:2 if int(status) in COME_BACK else 1]
            response["headers"] = {name: {"schema": {"type": "string"}} for name in names}
            if shape.rpartition(": ")[2] in EXAMPLES:
                response |= _content(shape)
        if has_key and "403" in operation["responses"]:
            operation["security"] = [{"ApiKey": []}]
    _, schemas = msgspec.json.schema_components(
        [type(each) for each in EXAMPLES.values()], ref_template="#/components/schemas/{name}")
    text = msgspec.json.encode(schemas).decode()
    found["components"] = {
        "schemas": msgspec.json.decode(text.replace(r"\\Z", "$")),  # as JSON Schema spells it
        "securitySchemes": {"ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}}}
    return found

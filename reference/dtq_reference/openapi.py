"""What the HTTP API says of itself: its routes as rows, the shapes of its answers, and the OpenAPI
document that follows from both.

The schemas are those of the structs that the engine works with, so that no second description of a
task exists. `operation` is what FastAPI is told of a route; `document` adds the schemas.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import FastAPI

from dtq_reference.errors import HTTP_STATUS
from dtq_reference.operations import QueueStats, WorkerView
from dtq_reference.task import DeadLetter, Task, TaskRequest

BATCH_LIMIT = 1000

STATUS = HTTP_STATUS | {"INVALID_REQUEST": 400, "NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405,
                        "INTERNAL_ERROR": 500, "NOT_READY": 503}
"""Every code that the API answers with: those of the engine, and those of HTTP."""

COME_BACK = (429, 503)
"""Whoever is answered so is told in Retry-After when to ask again."""


class Route(NamedTuple):
    """A row of the contract's table: what is asked, what answers it, in which shape for each good
    status (`tasks: Task` is an object with a list of such), and how it is refused."""

    method: str
    path: str
    does: Callable[..., Any]
    answers: dict[int, str]
    codes: str = ""
    body: str = ""
    query: type[msgspec.Struct] | None = None
    headers: tuple[str, ...] = ()
    prefix: str = "/api/v1"

    @property
    def needs_key(self) -> bool:
        """Whether it is destructive: who asks is written down, and needs the key if there is one.
        """
        return "by" in inspect.signature(self.does).parameters

    @property
    def refusals(self) -> dict[int, list[str]]:
        """The codes by their status."""
        codes = ["INTERNAL_ERROR", *self.codes.split()]
        codes += ["BROKER_UNAVAILABLE", "BROKER_UNREACHABLE"] if self.prefix else []
        codes += ["INVALID_REQUEST"] if self.query else []
        codes += ["UNAUTHENTICATED", "FORBIDDEN"] if self.needs_key else []
        return {status: [code for code in codes if STATUS[code] == status]
                for status in sorted({STATUS[code] for code in codes})}


class Duplicate(Task, frozen=True, kw_only=True):
    """The stored task of the idempotency key; nothing new was accepted."""

    duplicate: bool = True


class Batch(msgspec.Struct, frozen=True):
    """Submissions, each accepted or refused by itself."""

    tasks: Annotated[list[TaskRequest], msgspec.Meta(min_length=1, max_length=BATCH_LIMIT)]


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
ERROR = Error("INVALID_TASK", "priority: expected `int` <= 9.", "5e6f")
EXAMPLES: dict[str, Any] = {type(each).__name__: each for each in (
    REQUEST, Batch([REQUEST]), Duplicate(**TASK), Task(**TASK), QUEUE, WORKER, LETTER, ERROR)} | {
    "Accepted": {"task_id": ID, "status": "queued"}, "Purged": {"purged": 3},
    "Paused": {"queue": "default", "paused": True}, "Health": {"status": "ok"},
    "Outcome": {"status": 202, "body": {"task_id": ID, "status": "queued"}}}
"""An example of each shape; these are the schemas of the document."""


def operation(route: Route, *, has_key: bool) -> dict[str, Any]:
    """What FastAPI is told of a route. A refusal's codes are its description."""
    answers = {status: (shape, shape) for status, shape in route.answers.items()} | {
        status: (" or ".join(codes), "Error") for status, codes in route.refusals.items()}
    said: dict[str, Any] = {
        "responses": {str(status): {"description": description, "content": _content(shape)}
                      for status, (description, shape) in answers.items()},
        "parameters": [
            *(_parameter("path", name, str) for name in re.findall(r"{(\w+)}", route.path)),
            *(_parameter("query", field.name, field.type)
              for field in (msgspec.structs.fields(route.query) if route.query else ())),
            *(_parameter("header", name, str) for name in route.headers)]}
    if route.body:
        said["requestBody"] = {"required": True, "content": _content(route.body)}
    if has_key and route.needs_key:
        said["security"] = [{"ApiKey": []}]
    return {"methods": [route.method], "name": route.does.__name__, "openapi_extra": said,
            "status_code": next(iter(route.answers)), "description": inspect.getdoc(route.does)}


def _content(shape: str) -> dict[str, Any]:
    field, _, name = shape.rpartition(": ")
    if name not in EXAMPLES:
        return {name: {"schema": {"type": "string"}}}
    schema: dict[str, Any] = {"$ref": f"#/components/schemas/{name}"}
    example = msgspec.to_builtins(EXAMPLES[name])
    if field:
        schema = {"type": "object", "required": [field],
                  "properties": {field: {"type": "array", "items": schema}}}
        example = {field: [example]}
    return {"application/json": {"schema": schema, "example": example}}


def _parameter(place: str, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path",
            "schema": _as_json_schema(msgspec.json.schema(kind))}


def _as_json_schema(schema: Any) -> Any:
    """The schema with the end of a text as JSON Schema spells it."""
    return msgspec.json.decode(msgspec.json.encode(schema).decode().replace(r"\\Z", "$"))


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    shapes = [msgspec.defstruct(name, [(field, type(value)) for field, value in each.items()])
              if isinstance(each, dict) else type(each) for name, each in EXAMPLES.items()]
    _, schemas = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}")
    return FastAPI.openapi(app) | {"components": {
        "schemas": _as_json_schema(schemas),
        "securitySchemes": {"ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}}}}

"""What the HTTP API says of itself: its routes as rows, the shapes of its answers, and the OpenAPI
document that follows from both.

The schemas are those of the structs that the engine works with, so that no second description of a
task exists. `operation` is what FastAPI is told of a route; `document` adds the schemas.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

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


@dataclass(frozen=True)
class Route:
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

    @cached_property
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


EXAMPLES: dict[str, dict[str, Any]] = msgspec.json.decode(
    Path(__file__).with_name("examples.json").read_bytes())
"""An example of each shape; these are the schemas of the document."""

STRUCTS: dict[str, type] = {struct.__name__: struct for struct in (
    TaskRequest, Batch, Task, Duplicate, QueueStats, WorkerView, DeadLetter, Error)}
"""Shapes that say more than their examples do."""


def operation(route: Route, *, has_key: bool) -> dict[str, Any]:
    """What FastAPI is told of a route. A refusal's codes are its description."""
    answers = {status: (shape, shape) for status, shape in route.answers.items()} | {
        status: (" or ".join(codes), "Error") for status, codes in route.refusals.items()}
    said: dict[str, Any] = {
        "responses": {
            str(status): {"description": description, "content": _content(shape), "headers": {
                name: {"schema": {"type": "string"}}
                for name in ("X-Request-ID", "Retry-After")[:2 if status in COME_BACK else 1]}}
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
    name = route.does.__name__
    return {"methods": [route.method], "name": name, "operation_id": name, "openapi_extra": said,
            "status_code": next(iter(route.answers)), "description": inspect.getdoc(route.does)}


def _content(shape: str) -> dict[str, Any]:
    field, _, name = shape.rpartition(": ")
    if name not in EXAMPLES:
        return {name: {"schema": {"type": "string"}}}
    schema: dict[str, Any] = {"$ref": f"#/components/schemas/{name}"}
    example: Any = EXAMPLES[name]
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
    shapes = [STRUCTS.get(name) or msgspec.defstruct(
        name, [(field, type(value)) for field, value in each.items()])
              for name, each in EXAMPLES.items()]
    _, schemas = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}")
    return FastAPI.openapi(app) | {"components": {
        "schemas": _as_json_schema(schemas),
        "securitySchemes": {"ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}}}}

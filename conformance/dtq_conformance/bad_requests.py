"""Requests to the HTTP API that must be refused, each with the status and the code that it gets.

Comes in: nothing; these are data of the case that sends them. Bodies are bytes, since JSON cannot
say what some of them hold.
"""

from __future__ import annotations

import json

NOBODY = "0123456789abcdef" * 2
"""A well-formed id that no task has."""

DEEP = 10_000
LARGE_BYTES = 300_000
"""More than a payload may have by default."""

METADATA_BYTES = 4096


def _body(text: str) -> bytes:
    return b'{"task_type":"probe_task",' + text.encode() + b"}"


def _one(name: str, value: object) -> bytes:
    return json.dumps({"task_type": "probe_task", name: value}).encode()


INVALID, TOO_LARGE = (400, "INVALID_TASK"), (413, "PAYLOAD_TOO_LARGE")

BAD_BODIES: tuple[tuple[str, bytes, int, str], ...] = (
    ("an empty body", b"", *INVALID),
    ("half an object", b'{"task_type":', *INVALID),
    ("a list", b"[]", *INVALID),
    ("null", b"null", *INVALID),
    ("bytes that are not UTF-8", b'{"task_type":"\xff\xfe"}', *INVALID),
    ("no task type", b"{}", *INVALID),
    ("an unknown field", _one("colour", "red"), *INVALID),
    ("a payload with NaN", _body('"payload":{"x":NaN}'), *INVALID),
    ("a payload with Infinity", _body('"payload":{"x":Infinity}'), *INVALID),
    ("a payload with a number beyond all bounds", _body('"payload":{"x":1e999}'), *INVALID),
    ("a payload with a lone surrogate", _body(r'"payload":{"x":"\ud800"}'), *INVALID),
    ("a payload that is a list", _one("payload", []), *INVALID),
    ("a payload of 10,000 levels",
     _body('"payload":{"x":' + "[" * DEEP + "]" * DEEP + "}"), *INVALID),
    ("a payload that is too large", _one("payload", {"x": "a" * LARGE_BYTES}), *TOO_LARGE),
    ("metadata that are too large", _one("metadata", {"x": "a" * METADATA_BYTES}), *INVALID),
    ("metadata that are a string", _one("metadata", "x"), *INVALID),
    ("a time to live below zero", _one("metadata", {"ttl_seconds": -1}), *INVALID),
    ("a priority of 10", _one("priority", 10), *INVALID),
    ("a priority of 400 digits", _body(f'"priority":{"9" * 400}'), *INVALID),
    ("a priority that is a string", _one("priority", "high"), *INVALID),
    ("no attempt at all", _one("max_attempts", 0), *INVALID),
    ("more attempts than allowed", _one("max_attempts", 1_000_000), *INVALID),
    ("a time limit of 0", _one("timeout_ms", 0), *INVALID),
    ("a delay below zero", _one("delay_ms", -1), *INVALID),
    ("an id in upper case", _one("task_id", "A" * 32), *INVALID),
    ("an id of 31 digits", _one("task_id", "a" * 31), *INVALID),
    ("a queue's name with a line break", _one("queue", "default\n"), *INVALID),
    ("an empty key", _one("idempotency_key", ""), *INVALID),
    ("a key with a control character", _one("idempotency_key", "a\x00b"), *INVALID),
    ("a task type with a control character",
     json.dumps({"task_type": "probe\ntask"}).encode(), 400, ""),
    ("an empty task type", json.dumps({"task_type": ""}).encode(), 400, ""),
)
"""What is wrong, the body of `POST /api/v1/tasks`, the status and the code of the refusal; none
where two are right, since no handler has such a name either."""

BAD_REQUESTS: tuple[tuple[str, str, int, str], ...] = (
    ("GET", "//", 404, "NOT_FOUND"),
    ("GET", "/nothing", 404, "NOT_FOUND"),
    ("DELETE", "/tasks", 405, "METHOD_NOT_ALLOWED"),
    ("PUT", f"/tasks/{NOBODY}", 405, "METHOD_NOT_ALLOWED"),
    ("GET", f"/tasks/{NOBODY}", 404, "TASK_NOT_FOUND"),
    ("GET", "/tasks/no-id", 404, "TASK_NOT_FOUND"),
    ("GET", "/tasks/%0d%0aX", 404, "TASK_NOT_FOUND"),
    ("POST", f"/tasks/{NOBODY}/cancel", 404, "TASK_NOT_FOUND"),
    ("GET", "/queues/nobodys", 404, "QUEUE_NOT_FOUND"),
    ("GET", "/workers/nobody", 404, "WORKER_NOT_FOUND"),
    ("GET", f"/dlq/{NOBODY}", 404, "TASK_NOT_FOUND"),
    ("POST", f"/dlq/{NOBODY}/requeue", 404, "TASK_NOT_FOUND"),
    ("POST", f"/dlq/{NOBODY}/discard", 404, "TASK_NOT_FOUND"),
    ("GET", "/tasks?limit=0", 400, "INVALID_REQUEST"),
    ("GET", "/tasks?limit=10001", 400, "INVALID_REQUEST"),
    ("GET", "/tasks?limit=many", 400, "INVALID_REQUEST"),
    ("GET", "/tasks?status=done", 400, "INVALID_REQUEST"),
    ("GET", "/tasks?queue=BAD", 400, "INVALID_REQUEST"),
    ("GET", "/dlq?limit=-1", 400, "INVALID_REQUEST"),
)
"""Method, path (as `front.Api.ask` takes it), status and code."""

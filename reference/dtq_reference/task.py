"""The task: what a caller asks for (`TaskRequest`), and what the engine knows of it (`Task`)."""

from __future__ import annotations

import json
import re
import uuid
from math import ceil
from typing import Annotated, Any

import msgspec

from dtq_reference.errors import DtqError

MAX_METADATA_BYTES = 4096

MAX_LEVELS = 100
"""How deep JSON may be nested, so that every reader can follow it wherever it is called from."""

QueueName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}\Z")]
TaskId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
WorkerId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
Priority = Annotated[int, msgspec.Meta(ge=0, le=9)]
TimeoutMs = Annotated[int, msgspec.Meta(ge=1, le=3_600_000)]
DelayMs = Annotated[int, msgspec.Meta(ge=0, le=10 * 365 * 86_400_000)]


TaskType = Annotated[str, msgspec.Meta(min_length=1, max_length=200,
                                       pattern=r"^[^\x00-\x1f\x7f]+\Z")]
IdempotencyKey = Annotated[str, msgspec.Meta(min_length=1, max_length=255,
                                             pattern=r"^[^\x00-\x1f\x7f]+\Z")]
TtlSeconds = Annotated[float, msgspec.Meta(gt=0, le=10 * 365 * 86_400)]


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A submission. What is left out gets the contract's default when it is accepted."""

    task_type: TaskType
    payload: dict[str, Any] = {}
    task_id: TaskId = msgspec.field(default_factory=lambda: uuid.uuid4().hex)
    queue: QueueName = "default"
    priority: Priority = 5
    max_attempts: Annotated[int, msgspec.Meta(ge=1)] = 5
    timeout_ms: TimeoutMs | None = None
    delay_ms: DelayMs = 0
    metadata: dict[str, Any] = {}
    idempotency_key: IdempotencyKey | None = None

    @property
    def ttl_ms(self) -> int:
        """How long after its acceptance an attempt may begin; 0 if for ever."""
        seconds: float = self.metadata.get("ttl_seconds", 0)
        return ceil(1000 * seconds)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task as Redis holds it. Times are epoch milliseconds of the Redis server's clock.

    `result_expired`: it succeeded, and its result is not kept any more. `metadata` also has
    `previous_attempts` of a requeued task, and `discarded` when its dead letter was thrown away.
    """

    task_id: str
    queue: str
    task_type: str
    payload: Any
    metadata: Any
    priority: int
    max_attempts: int
    timeout_ms: int
    status: str
    attempt: int
    created_at: int
    available_at: int
    expires_at: int | None = None
    idempotency_key: str | None = None
    cancel_requested: int | None = None
    worker_id: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    duration_ms: int | None = None
    error_class: str | None = None
    error_message: str | None = None
    retryable: bool | None = None
    retry_delay_ms: int | None = None
    result: Any = None
    result_expired: bool = False


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the dead-letter stream. An orphan's has of the task what its entry had."""

    task_id: str = ""
    original_queue: str = ""
    task_type: str = ""
    payload: Any = None
    metadata: Any
    attempts_made: int
    last_error_class: str
    last_error: str
    failed_at_ms: int
    worker_id: str
    retryable: bool


def request_from(fields: dict[str, Any], *, max_payload_bytes: int, attempts_limit: int,
                 default_timeout_ms: int) -> TaskRequest:
    """Check a submission. Raises `DtqError` INVALID_TASK or PAYLOAD_TOO_LARGE, naming the field."""
    try:
        request = msgspec.convert(fields, TaskRequest)
        if "ttl_seconds" in request.metadata:
            msgspec.convert({"ttl_seconds": request.metadata["ttl_seconds"]}, _Ttl)
    except msgspec.ValidationError as error:
        raise DtqError("INVALID_TASK", _sentence(str(error))) from error
    except UnicodeEncodeError as error:
        raise DtqError("INVALID_TASK", f"A field's name is not UTF-8 text: {error}.") from error
    encode_json(request.task_type, "task_type")
    encode_json(request.idempotency_key, "idempotency_key")
    max_attempts = request.max_attempts if "max_attempts" in fields else min(
        request.max_attempts, attempts_limit)
    if max_attempts > attempts_limit:
        raise DtqError("INVALID_TASK", f"max_attempts is {request.max_attempts}; "
                                       f"at most {attempts_limit} are allowed here.")
    payload_bytes = len(encode_json(request.payload, "payload"))
    if payload_bytes > max_payload_bytes:
        raise DtqError("PAYLOAD_TOO_LARGE", f"payload has {payload_bytes} bytes; "
                                            f"at most {max_payload_bytes} are allowed.")
    if len(encode_json(request.metadata, "metadata")) > MAX_METADATA_BYTES:
        raise DtqError("INVALID_TASK", f"metadata has more than {MAX_METADATA_BYTES} bytes.")
    return msgspec.structs.replace(request, max_attempts=max_attempts,
                                   timeout_ms=request.timeout_ms or default_timeout_ms)


class _Ttl(msgspec.Struct):
    ttl_seconds: TtlSeconds


def task_from(fields: dict[str, str], result: bytes | None) -> Task:
    """A task from its hash and its result."""
    known: dict[str, Any] = dict(fields)
    known["payload"] = _decoded(fields["payload"])
    known["metadata"] = msgspec.json.decode(fields["metadata"])
    if "previous_attempts" in fields:
        known["metadata"]["previous_attempts"] = msgspec.json.decode(fields["previous_attempts"])
    if "discarded" in fields:
        known["metadata"]["discarded"] = True
    known["result"] = None if result is None else msgspec.json.decode(result)
    known["result_expired"] = result is None and fields.get("status") == "succeeded"
    return msgspec.convert(known, Task, strict=False)


def dead_letter_from(fields: dict[str, str]) -> DeadLetter:
    """A dead letter from its entry."""
    known: dict[str, Any] = dict(fields)
    for name in ("payload", "metadata"):
        if name in fields:
            known[name] = _decoded(fields[name])
    return msgspec.convert(known, DeadLetter, strict=False)


def _decoded(text: str) -> Any:
    """What the text says as JSON, or the text itself: somebody else may have written it."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _sentence(fault: str) -> str:
    """A fault as msgspec words it, with the field in front: "priority: expected `int` <= 9."."""
    reason, _, place = fault.partition(" - at `")
    found = re.search(r"\$\.(\w+)", place)
    return f"{found.group(1)}: {reason[0].lower()}{reason[1:]}." if found else f"{reason}."


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def encode_json(value: Any, field: str) -> bytes:
    """Compact UTF-8 JSON. Raises `DtqError` INVALID_TASK when `value` is not JSON.

    The standard library's encoder, since it refuses what others silently change: NaN, bytes.
    """
    try:
        encoded = _ENCODER.encode(value).encode()
    except (TypeError, ValueError) as error:
        raise DtqError("INVALID_TASK", f"{field} is not JSON: {error}") from error
    except RecursionError as error:
        raise _too_deep(field) from error
    if encoded.count(b"[") + encoded.count(b"{") > MAX_LEVELS and _is_deep(value):
        raise _too_deep(field)
    return encoded


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [inner for each in level
                 for inner in (each.values() if isinstance(each, dict) else each)
                 if isinstance(inner, dict | list | tuple)]
    return bool(level)


def _too_deep(field: str) -> DtqError:
    return DtqError("INVALID_TASK",
                    f"{field} is nested too deep; at most {MAX_LEVELS} levels are allowed.")

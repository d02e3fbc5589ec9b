"""What every HTTP request goes through: a request id, a bounded body, and refusals in one form.

Requests come in from uvicorn through `Frame`; what an endpoint raises goes out as
{code, message, request_id}. A traceback goes to the log, never to the client.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtq_reference.errors import DtqError
from dtq_reference.openapi import RETRY_AFTER_S, STATUS
from dtq_reference.task import IdempotencyKey, QueueName

log = logging.getLogger("dtq.api")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Frame:
    """Around every request: its id, given by the client or made here, is in the answer, in each
    refusal and in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope["request_id"] = _request_id(scope)
        has_begun = False

        async def send_with_id(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message["headers"] = [*message.get("headers", []),
                                      (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            log.exception("request %s, %s %s", request_id, scope["method"], scope["path"])
            if has_begun:
                raise
            sorry = DtqError("INTERNAL_ERROR", "The request failed; the log says why.")
            await _refused(sorry, request_id)(scope, receive, send_with_id)


def id_of(scope: MutableMapping[str, Any]) -> str:
    """The id of a request."""
    request_id: str = scope["request_id"]
    return request_id


def _request_id(scope: Scope) -> str:
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


async def read_json(request: Request, *, limit_bytes: int) -> Any:
    """The body as JSON. Raises `DtqError` PAYLOAD_TOO_LARGE as soon as it is too long, whatever
    its header says, or INVALID_TASK."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise DtqError("PAYLOAD_TOO_LARGE", f"The body has more than {limit_bytes} bytes.")
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise DtqError("INVALID_TASK", f"The body is not JSON: {error}.") from error
    except RecursionError as error:
        raise DtqError("INVALID_TASK", "The body is nested too deep.") from error


def with_key(fields: Any, header: str | None) -> Any:
    """A submission with the key that its header names, UTF-8 as in the body. The header beats the
    field, which is left where it is unfit, to be refused. Raises `DtqError` INVALID_TASK."""
    if header is None or not isinstance(fields, dict):
        return fields
    try:
        msgspec.convert(fields.get("idempotency_key"), IdempotencyKey | None)
        return fields | {"idempotency_key": header.encode("latin-1").decode()}
    except msgspec.ValidationError:
        return fields
    except UnicodeDecodeError as error:
        raise DtqError("INVALID_TASK", "The header Idempotency-Key is not UTF-8.") from error


def queue_of(fields: Any) -> str:
    """The queue that a submission names, if it is one: fit for a label."""
    named = fields.get("queue", "default") if isinstance(fields, dict) else ""
    try:
        return msgspec.convert(named, QueueName)
    except msgspec.ValidationError:
        return ""


def refusal(error: DtqError, request_id: str) -> tuple[int, dict[str, Any]]:
    """A refusal's HTTP status and body."""
    return STATUS[error.code], {"code": error.code, "message": error.message,
                                "request_id": request_id, **error.details}


def _refused(error: DtqError, request_id: str, headers: dict[str, str] | None = None) -> Response:
    status, body = refusal(error, request_id)
    if status in (429, 503):
        headers = {"Retry-After": str(RETRY_AFTER_S)}
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


async def answer_refusal(request: Request, error: Exception) -> Response:
    """What was refused by the engine."""
    assert isinstance(error, DtqError)
    request_id = id_of(request.scope)
    if STATUS[error.code] >= 500:
        log.warning("request %s, %s %s: %s", request_id, request.method, request.url.path, error)
    return _refused(error, request_id)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """What there is no route or method for."""
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    nothing = DtqError(phrase.upper().replace(" ", "_"),
                       f"{phrase}: {request.method} {request.url.path}.")
    return _refused(nothing, id_of(request.scope), dict(error.headers or {}))


async def answer_fault(request: Request, error: Exception) -> Response:
    """A parameter that FastAPI does not accept."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = first["loc"][-1]
    return _refused(DtqError("INVALID_REQUEST", f"{name}: {first['msg']}."),
                    id_of(request.scope))

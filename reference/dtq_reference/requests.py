"""What every HTTP request goes through: a request id, a bounded body, and refusals in one form.

Requests come in from uvicorn through `frame`; whatever an endpoint raises goes out as
{code, message, request_id}. A traceback goes to the log, never to the client.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtq_reference.errors import DtqError
from dtq_reference.openapi import COME_BACK, STATUS, Error
from dtq_reference.task import IdempotencyKey, QueueName

log = logging.getLogger("dtq.api")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
RETRY_AFTER = (b"retry-after", b"1")


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer: a struct, or what else msgspec encodes."""
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def frame(app: ASGIApp) -> ASGIApp:
    """Around every request: its id, given by the client or made here, is in the answer, in each
    refusal and in the log."""

    async def framed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        request = Request(scope)
        given = request.headers.get("x-request-id", "")
        request.state.id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-request-id", request.state.id.encode()))
                if message["status"] in COME_BACK:
                    message["headers"].append(RETRY_AFTER)
            await send(message)

        try:
            await app(scope, receive, send_with_id)
        except Exception as error:
            await (await refuse(request, error))(scope, receive, send_with_id)

    return framed


async def refuse(request: Request, error: Exception) -> Response:
    """Whatever was raised, as an answer. What is not the client's doing is logged."""
    match error:
        case DtqError():
            refusal = error
        case HTTPException():  # there is no such route, or it has no such method
            phrase = HTTPStatus(error.status_code).phrase
            refusal = DtqError(phrase.upper().replace(" ", "_"),
                               f"{phrase}: {request.method} {request.url.path}.")
        case _:
            refusal = DtqError("INTERNAL_ERROR", "The request failed; the log says why.")
    status, body = answer_to(refusal, request)
    if status >= 500:
        fault = None if error is refusal else error
        log.log(logging.ERROR if fault else logging.WARNING, "request %s, %s %s: %s",
                request.state.id, request.method, request.url.path, refusal, exc_info=fault)
    return answer(body, status, getattr(error, "headers", None))


HANDLERS: dict[int | type[Exception], Any] = {HTTPException: refuse}
"""What FastAPI would answer in a form of its own."""


def answer_to(refusal: DtqError, request: Request) -> tuple[int, Error]:
    """A refusal's HTTP status and body."""
    return STATUS[refusal.code], Error(refusal.code, refusal.message, request.state.id,
                                       **refusal.details)


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
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DtqError("INVALID_TASK", f"The body cannot be read as JSON: {error}.") from error


def parameters(request: Request, form: type[msgspec.Struct]) -> dict[str, Any]:
    """The parameters of a query. Raises `DtqError` INVALID_REQUEST that names the one at fault."""
    try:
        return msgspec.structs.asdict(msgspec.convert(dict(request.query_params), form,
                                                      strict=False))
    except msgspec.ValidationError as error:
        reason, _, field = str(error).rstrip("`").partition(" - at `$.")
        raise DtqError("INVALID_REQUEST", f"{field}: {reason}.") from error


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

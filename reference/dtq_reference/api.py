"""The HTTP API: JSON in, one operation on the queue, JSON out. `dtq api run` serves it.

Any number of API processes run beside each other; they share nothing but Redis. What is refused is
answered as {code, message, request_id}; what `openapi.py` says of a route is what it does.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
import uvicorn
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute

from dtq_reference import logs, metrics, openapi, readiness, requests
from dtq_reference.calls import Actor
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.events import EVENT_TYPES, Fanout
from dtq_reference.openapi import describe
from dtq_reference.operations import Steps, T
from dtq_reference.queue import AsyncQueue
from dtq_reference.settings import Settings
from dtq_reference.states import TRANSITIONS
from dtq_reference.task import MAX_METADATA_BYTES
from dtq_reference.transport import AsyncTransport

log = logging.getLogger("dtq.api")

PREFIX = "/api/v1"
ANSWER_LIMIT_S = 5.0
"""How long Redis is asked again before a request is answered with 503."""

AT_ONCE = 64
"""Requests that ask Redis at the same time; fewer than the connections that redis-py allows."""

ESCAPED = 6
"""JSON may spell one byte as six, and is measured when it is read."""

BROKER = " BROKER_UNAVAILABLE BROKER_UNREACHABLE"
KEY: dict[str, Any] = {"has_key": True}

Limit = Annotated[int, Query(ge=1, le=10_000)]
Status = Annotated[str | None, Query(pattern=f"^({'|'.join(TRANSITIONS)})$")]
QueueFilter = Annotated[str | None, Query(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]


class Api:
    """The routes, and what they share: one queue, one subscription, one set of counters."""

    def __init__(self, settings: Settings, known_types: frozenset[str] | None) -> None:
        self.settings = settings
        self.known_types = known_types
        self.queue = AsyncQueue(settings)
        self.operations = self.queue.operations
        self.metrics = metrics.Counting()
        self.transport = AsyncTransport(settings.redis_url, settings.key_prefix)
        self.fanout = Fanout(self.transport.redis, self.operations.keys.events)
        self._at_once = asyncio.Semaphore(AT_ONCE)

    # Submission -----------------------------------------------------------------------------

    async def submit(self, request: Request) -> Response:
        """Submit a task."""
        fields = await self._body(request, 1)
        fields = requests.with_key(fields, request.headers.get("idempotency-key"))
        [answer] = await self._submit([fields])
        if isinstance(answer, DtqError):
            raise answer
        return _json(*answer)

    async def submit_batch(self, request: Request) -> Response:
        """Submit up to 1000 tasks, each accepted or refused by itself."""
        body = await self._body(request, openapi.BATCH_LIMIT // 100)
        tasks = body.get("tasks") if isinstance(body, dict) and len(body) == 1 else None
        if not isinstance(tasks, list) or not 1 <= len(tasks) <= openapi.BATCH_LIMIT:
            raise DtqError("INVALID_TASK", 'The body must be {"tasks": [...]} with 1 to '
                                           f"{openapi.BATCH_LIMIT} submissions.")
        outcomes = []
        for answer in await self._submit(tasks):
            if isinstance(answer, DtqError):
                outcomes.append(requests.refusal(answer, requests.id_of(request.scope)))
            else:
                outcomes.append(answer)
        return _json(200, {"outcomes": [{"status": status, "body": body}
                                        for status, body in outcomes]})

    async def _body(self, request: Request, times: int) -> Any:
        """The body as JSON, at most `times` as long as one submission can be."""
        limit_bytes = times * ESCAPED * (self.settings.max_payload_bytes + 2 * MAX_METADATA_BYTES)
        try:
            return await requests.read_json(request, limit_bytes=limit_bytes)
        except DtqError as refusal:
            self.metrics.rejected("", refusal.code)
            raise

    async def _submit(self, tasks: list[Any]) -> list[DtqError | tuple[int, Any]]:
        refusals = [self._unknown_type(fields) for fields in tasks]
        wanted = [fields for fields, refusal in zip(tasks, refusals, strict=True) if not refusal]
        try:
            answers = iter(await self._do("submit", self.operations.submit_all(wanted)))
        except DtqError as error:
            for fields in tasks:
                self.metrics.rejected(requests.queue_of(fields), error.code)
            raise
        outcomes: list[DtqError | tuple[int, Any]] = []
        for fields, refusal in zip(tasks, refusals, strict=True):
            answer = refusal or next(answers)
            if isinstance(answer, DtqError):
                self.metrics.rejected(requests.queue_of(fields), answer.code)
                outcomes.append(answer)
            elif answer.duplicate:
                outcomes.append((200, await self._duplicate(answer.task_id, answer.status)))
            else:
                self.metrics.submitted(requests.queue_of(fields), fields["task_type"])
                outcomes.append((202, openapi.Accepted(answer.task_id, answer.status)))
        return outcomes

    def _unknown_type(self, fields: Any) -> DtqError | None:
        name = fields.get("task_type") if isinstance(fields, dict) else None
        if self.known_types is None or not isinstance(name, str) or name in self.known_types:
            return None
        return DtqError("UNKNOWN_TASK_TYPE", f"No handler is registered for {name[:200]!r}.")

    async def _duplicate(self, task_id: str, status: str) -> Any:
        task = await self._do("get", self.operations.get(task_id))
        if task is None:  # forgotten since
            return {"task_id": task_id, "status": status, "duplicate": True}
        return openapi.Duplicate(**msgspec.structs.asdict(task))

    # Tasks ----------------------------------------------------------------------------------

    async def get_task(self, task_id: str) -> Response:
        """Show a task."""
        task = await self._do("get", self.operations.get(task_id))
        if task is None:
            raise DtqError("TASK_NOT_FOUND", f"There is no task {task_id[:200]!r}.")
        return _json(200, task)

    async def list_tasks(self, queue: QueueFilter = None, status: Status = None,
                         limit: Limit = 100) -> Response:
        """Show the newest tasks, newest first."""
        steps = self.operations.tasks(queue=queue, status=status, limit=limit)
        return _json(200, {"tasks": await self._do("list", steps)})

    async def cancel_task(self, task_id: str, request: Request) -> Response:
        """Cancel a task that waits, or ask a running one to stop."""
        actor = self._authorised(request)
        if await self._do("cancel", self.operations.cancel(task_id, actor)) == "requested":
            raise DtqError("CANCEL_REQUESTED", f"Task {task_id} is running. It was asked to stop; "
                           "no further attempt begins.", task_id=task_id)
        task = await self._do("get", self.operations.get(task_id))
        if task is not None:
            self.metrics.finished(task.queue, task.task_type, "cancelled")
        return _json(202, openapi.Accepted(task_id, "cancelled"))

    # Queues and workers ---------------------------------------------------------------------

    async def list_queues(self) -> Response:
        """Show all queues."""
        return _json(200, {"queues": await self._do("stats", self.operations.queues())})

    async def get_queue(self, queue: str) -> Response:
        """Show a queue."""
        return _json(200, await self._do("stats", self.operations.queue_stats(queue)))

    async def pause_queue(self, queue: str, request: Request) -> Response:
        """Let no worker take from a queue."""
        await self._do("pause", self.operations.pause(queue, self._authorised(request)))
        return _json(200, openapi.Paused(queue, paused=True))

    async def resume_queue(self, queue: str, request: Request) -> Response:
        """Let workers take from a queue again."""
        await self._do("resume", self.operations.resume(queue, self._authorised(request)))
        return _json(200, openapi.Paused(queue, paused=False))

    async def list_workers(self) -> Response:
        """Show all workers."""
        return _json(200, {"workers": await self._do("workers", self.operations.workers())})

    async def get_worker(self, worker_id: str) -> Response:
        """Show a worker."""
        return _json(200, await self._do("workers", self.operations.worker(worker_id)))

    # Dead letters ---------------------------------------------------------------------------

    async def list_dead_letters(self, limit: Limit = 100) -> Response:
        """Show the newest dead letters, newest first."""
        letters = await self._do("dead_letters", self.operations.dead_letters(limit))
        return _json(200, {"dead_letters": letters})

    async def get_dead_letter(self, task_id: str) -> Response:
        """Show a dead letter."""
        return _json(200, await self._do("dead_letters", self.operations.dead_letter(task_id)))

    async def requeue_dead_letter(self, task_id: str, request: Request) -> Response:
        """Give a dead-lettered task a new life."""
        await self._do("requeue", self.operations.requeue(task_id, self._authorised(request)))
        return _json(200, openapi.Accepted(task_id, "queued"))

    async def discard_dead_letter(self, task_id: str, request: Request) -> Response:
        """Throw a dead letter away; the task stays dead-lettered."""
        await self._do("discard", self.operations.discard(task_id, self._authorised(request)))
        return _json(200, openapi.Accepted(task_id, "dead_lettered"))

    async def purge_dead_letters(self, request: Request) -> Response:
        """Throw all dead letters away."""
        steps = self.operations.purge_dead_letters(self._authorised(request))
        return _json(200, openapi.Purged(await self._do("purge", steps)))

    # The process itself ---------------------------------------------------------------------

    async def health(self) -> Response:
        """Does the process answer? Redis is not asked."""
        return _json(200, openapi.Health("ok"))

    async def ready(self) -> Response:
        """Does Redis take work, and are the consumer groups there?"""
        reasons = await readiness.check(self.transport.redis, self.operations.keys)
        if reasons:
            raise DtqError("NOT_READY", " ".join(reasons))
        return _json(200, openapi.Health("ready"))

    async def scrape(self) -> Response:
        """What Prometheus reads."""
        try:
            found = await self._do("stats", metrics.readings(self.operations),
                                   limit_s=readiness.LIMIT_S)
        except DtqError as error:
            log.warning("scraped without depths: %s", error)
            found = {}
        return Response(self.metrics.text(found), media_type=self.metrics.content_type)

    # What the routes share ------------------------------------------------------------------

    async def _do(self, operation: str, steps: Steps[T], *,
                  limit_s: float = ANSWER_LIMIT_S) -> T:
        """Carry out an operation, and count it."""
        result = "ok"
        try:
            async with asyncio.timeout(limit_s):
                await self._at_once.acquire()
        except TimeoutError as error:
            raise DtqError("BROKER_UNAVAILABLE", "Too many requests wait for Redis. Nothing was "
                                                 "done; try again later.") from error
        try:
            return await self.queue.do(steps, limit_s=limit_s)
        except BrokerUnreachable as error:
            result = "unanswered"
            raise DtqError("BROKER_UNREACHABLE", str(error)) from error
        except RedisError as error:
            result = "error"
            raise DtqError("BROKER_UNAVAILABLE", f"Redis refused: {error}") from error
        except DtqError as refusal:
            result = "error" if refusal.code == "BROKER_UNAVAILABLE" else "ok"
            raise
        finally:
            self._at_once.release()
            self.metrics.redis_operation(operation, result)

    def _authorised(self, request: Request) -> Actor:
        """Who asks; refused without the key, where there is one."""
        request_id = requests.id_of(request.scope)
        if not self.settings.api_key:
            return Actor("api:anonymous", request_id)
        given = request.headers.get("x-api-key")
        if given is None:
            raise DtqError("UNAUTHENTICATED", "The header X-API-Key is missing.")
        if not hmac.compare_digest(given.encode("latin-1"), self.settings.api_key.encode()):
            raise DtqError("FORBIDDEN", "The header X-API-Key holds another key.")
        return Actor("api:key", request_id)


def _json(status: int, value: Any) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def create_app(settings: Settings, known_types: frozenset[str] | None = None) -> FastAPI:
    """The application. With `known_types`, a submission of any other type is refused."""
    api = Api(settings, known_types)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        listening = asyncio.ensure_future(api.fanout.run())
        yield
        while not listening.done():  # redis-py swallows a cancellation while it connects
            listening.cancel()
            await asyncio.wait({listening}, timeout=0.1)
        await api.queue.close()
        await api.transport.close()

    app = FastAPI(title="dtq", version="3", lifespan=lifespan, redirect_slashes=False,
                  redoc_url=None)
    _add_routes(app, api)
    app.add_exception_handler(DtqError, requests.answer_refusal)
    app.add_exception_handler(HTTPException, requests.answer_http_error)
    app.add_exception_handler(RequestValidationError, requests.answer_fault)
    app.add_middleware(requests.Frame)
    app.openapi = lambda: openapi.document(app, (  # type: ignore[method-assign]
        f"Events are sent to WebSocket clients of `{settings.ws_path}` as JSON objects, whose "
        f"`type` is one of {', '.join(EVENT_TYPES)}."), has_key=bool(settings.api_key))
    return app


def _add_routes(app: FastAPI, api: Api) -> None:
    batch = "INVALID_TASK PAYLOAD_TOO_LARGE"
    submission = f"{batch} UNKNOWN_TASK_TYPE IDEMPOTENCY_IN_PROGRESS QUEUE_FULL"
    cancelling = "TASK_NOT_FOUND CANCEL_REQUESTED TASK_TERMINAL"
    requeueing = "TASK_NOT_FOUND NOT_REQUEUEABLE IDEMPOTENCY_IN_PROGRESS"
    posts: tuple[tuple[str, Any, dict[int, str], str, dict[str, Any]], ...] = (
        ("/tasks", api.submit, {202: "Accepted", 200: "Duplicate"}, submission,
         {"body": "TaskRequest", "header": "Idempotency-Key"}),
        ("/tasks/batch", api.submit_batch, {200: "Outcomes"}, batch, {"body": "Batch"}),
        ("/tasks/{task_id}/cancel", api.cancel_task, {202: "Accepted"}, cancelling, KEY),
        ("/queue/{queue}/pause", api.pause_queue, {200: "Paused"}, "INVALID_TASK", KEY),
        ("/queue/{queue}/resume", api.resume_queue, {200: "Paused"}, "INVALID_TASK", KEY),
        ("/dlq/purge", api.purge_dead_letters, {200: "Purged"}, "", KEY),
        ("/dlq/{task_id}/requeue", api.requeue_dead_letter, {200: "Accepted"}, requeueing, KEY),
        ("/dlq/{task_id}/discard", api.discard_dead_letter, {200: "Accepted"},
         "TASK_NOT_FOUND NOT_REQUEUEABLE", KEY))
    gets: tuple[tuple[str, Any, str, str], ...] = (
        ("/tasks", api.list_tasks, "Tasks", "INVALID_REQUEST"),
        ("/tasks/{task_id}", api.get_task, "Task", "TASK_NOT_FOUND"),
        ("/queues", api.list_queues, "Queues", ""),
        ("/queues/{queue}", api.get_queue, "QueueStats", "QUEUE_NOT_FOUND"),
        ("/workers", api.list_workers, "Workers", ""),
        ("/workers/{worker_id}", api.get_worker, "WorkerView", "WORKER_NOT_FOUND"),
        ("/dlq", api.list_dead_letters, "DeadLetters", "INVALID_REQUEST"),
        ("/dlq/{task_id}", api.get_dead_letter, "DeadLetter", "TASK_NOT_FOUND"))
    for path, endpoint, answers, codes, told in posts:
        _add(app, "POST", PREFIX + path, endpoint, describe(answers, codes + BROKER, **told))
    for path, endpoint, shape, codes in gets:
        _add(app, "GET", PREFIX + path, endpoint, describe({200: shape}, codes + BROKER))
    _add(app, "GET", "/health", api.health, describe({200: "Health"}))
    _add(app, "GET", "/ready", api.ready, describe({200: "Health"}, "NOT_READY"))
    _add(app, "GET", "/metrics", api.scrape,
         {**describe({}), "response_class": PlainTextResponse})
    app.router.routes.append(WebSocketRoute(api.settings.ws_path, api.fanout.serve))


def _add(app: FastAPI, method: str, path: str, endpoint: Any, told: dict[str, Any]) -> None:
    app.add_api_route(path, endpoint, methods=[method], operation_id=endpoint.__name__, **told)


def configuration(app: FastAPI, settings: Settings, *, port: int) -> uvicorn.Config:
    """How the server serves: events are small, so they are not compressed, and clients have
    nothing long to say. Its log is quiet, since it would hold what clients put into headers."""
    return uvicorn.Config(app, host=settings.api_host, port=port, log_config=None,
                          log_level=logging.WARNING, access_log=False, server_header=False,
                          ws_max_size=4096, ws_per_message_deflate=False,
                          timeout_graceful_shutdown=round(ANSWER_LIMIT_S))


def listen(config: uvicorn.Config) -> socket.socket:
    """Bind the server's address. Raises `SettingsError` when that cannot be done."""
    try:
        listening = config.bind_socket()
    except SystemExit as error:  # uvicorn has logged why
        raise SettingsError(f"DTQ_API_HOST and DTQ_API_PORT: {config.host}:{config.port} cannot "
                            "be listened on.") from error
    # asyncio sees to it only for sockets that it has made; without it each answer waits 40 ms
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def run(settings: Settings, known_types: frozenset[str] | None = None) -> None:
    """Serve until asked to stop (SIGTERM or SIGINT); what was begun is answered first. Raises
    `SettingsError` when the address cannot be listened on."""
    logs.configure(settings)
    config = configuration(create_app(settings, known_types), settings, port=settings.api_port)
    server = uvicorn.Server(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal once more when it has stopped: then this hears it, to no effect
        signal.signal(number, server.handle_exit)
    listening = listen(config)
    host, port = listening.getsockname()[:2]
    log.info("serving http://%s:%d", f"[{host}]" if ":" in host else host, port)
    server.run(sockets=[listening])
    log.info("the API has stopped")

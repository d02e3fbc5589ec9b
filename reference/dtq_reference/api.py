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
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response
from redis.exceptions import RedisError
from starlette.responses import PlainTextResponse

from dtq_reference import logs, metrics, openapi, readiness, requests
from dtq_reference.calls import Actor
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.events import EVENT_TYPES, Fanout
from dtq_reference.openapi import BATCH_LIMIT, Accepted, Paused, refusals, told
from dtq_reference.operations import Again, Operations, Steps, Submitted, T
from dtq_reference.queue import AsyncQueue
from dtq_reference.requests import answer
from dtq_reference.settings import Settings
from dtq_reference.states import TRANSITIONS
from dtq_reference.task import MAX_METADATA_BYTES, TaskRequest
from dtq_reference.transport import AsyncTransport

log = logging.getLogger("dtq.api")

ANSWER_LIMIT_S = 5.0
"""How long Redis is asked again before a request is answered with 503."""

AT_ONCE = 64
"""Requests that ask Redis at the same time; fewer than the connections that redis-py allows."""

ESCAPED = 6
"""JSON may spell one byte as six, and is measured when it is read."""


class Offered(Operations):
    """The operations, on tasks of known types only where `known_types` are given."""

    def __init__(self, settings: Settings, known_types: frozenset[str] | None) -> None:
        super().__init__(settings)
        self._known_types = known_types

    def _request(self, fields: Any) -> TaskRequest:
        request = super()._request(fields)
        if self._known_types is not None and request.task_type not in self._known_types:
            raise DtqError("UNKNOWN_TASK_TYPE", "No handler is registered for "
                                                f"{request.task_type!r}.")
        return request


class Api:
    """What the routes share: one queue, one subscription, one set of counters."""

    def __init__(self, settings: Settings, known_types: frozenset[str] | None) -> None:
        self.settings = settings
        self.operations = Offered(settings, known_types)
        self.metrics = metrics.Counting()
        self.transport = AsyncTransport(settings.redis_url, settings.key_prefix)
        self.fanout = Fanout(self.transport.redis, self.operations.keys.events)
        self._queue = AsyncQueue(settings)
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        """Listen to events as long as the application serves."""
        listening = asyncio.ensure_future(self.fanout.run())
        yield
        while not listening.done():  # redis-py swallows a cancellation while it connects
            listening.cancel()
            await asyncio.wait({listening}, timeout=0.1)
        await self._queue.close()
        await self.transport.close()

    async def do(self, operation: str, steps: Steps[T], *, limit_s: float = ANSWER_LIMIT_S) -> T:
        """Carry out an operation, and count it."""
        try:
            async with asyncio.timeout(limit_s):
                await self._at_once.acquire()
        except TimeoutError as error:
            raise DtqError("BROKER_UNAVAILABLE", "Too many requests wait for Redis. Nothing was "
                                                 "done; try again later.") from error
        result = "ok"
        try:
            return await self._queue.do(steps, limit_s=limit_s)
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

    async def body(self, request: Request, times: int) -> Any:
        """The body as JSON, at most `times` as long as one submission can be."""
        limit_bytes = times * ESCAPED * (self.settings.max_payload_bytes + 2 * MAX_METADATA_BYTES)
        try:
            return await requests.read_json(request, limit_bytes=limit_bytes)
        except DtqError as refusal:
            self.metrics.rejected("", refusal.code)
            raise

    async def submit(self, request: Request, tasks: list[Any]) -> list[tuple[int, Any]]:
        """Submit tasks; the status and the body of the answer to each."""
        answers = await self.do("submit", self.operations.submit_all(tasks))
        return [await self._answer(request, fields, answer)
                for fields, answer in zip(tasks, answers, strict=True)]

    async def _answer(self, request: Request, fields: Any,
                      answer: Submitted | DtqError) -> tuple[int, Any]:
        queue = requests.queue_of(fields)
        if isinstance(answer, DtqError):
            self.metrics.rejected(queue, answer.code)
            return requests.answer_to(answer, request)
        if answer.duplicate:
            task = await self.do("get", self.operations.get(answer.task_id))
            return 200, openapi.Duplicate(**msgspec.structs.asdict(task)) if task else answer
        # the first copy was ours, and lost its answer, where only this process knows the id
        if not isinstance(answer, Again) or "task_id" not in fields:
            self.metrics.submitted(queue, fields["task_type"])
        return 202, Accepted(answer.task_id, answer.status)


async def _api(request: Request) -> Any:
    return request.app.state.api


Served = Annotated[Api, Depends(_api)]


async def _authorised(api: Served, request: Request) -> Actor:
    """Who asks; refused without the key, where there is one."""
    key, given = api.settings.api_key, request.headers.get("x-api-key")
    if key and given is None:
        raise DtqError("UNAUTHENTICATED", "The header X-API-Key is missing.")
    if key and not hmac.compare_digest((given or "").encode("latin-1"), key.encode()):
        raise DtqError("FORBIDDEN", "The header X-API-Key holds another key.")
    return Actor("api:key" if key else "api:anonymous", request.state.id)


By = Annotated[Actor, Depends(_authorised)]
Limit = Annotated[int, Query(ge=1, le=10_000)]
Status = Annotated[str | None, Query(pattern=f"^({'|'.join(TRANSITIONS)})$")]
QueueFilter = Annotated[str | None, Query(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
Key = Annotated[str | None, Header(alias="Idempotency-Key")]

PREFIX = "/api/v1"
BROKER = "INTERNAL_ERROR BROKER_UNAVAILABLE BROKER_UNREACHABLE"
process = APIRouter(responses=refusals("INTERNAL_ERROR"))
public = APIRouter(prefix=PREFIX, responses=refusals(BROKER))
guarded = APIRouter(prefix=PREFIX, responses=refusals(f"{BROKER} UNAUTHENTICATED FORBIDDEN"))


# Tasks ------------------------------------------------------------------------------------------

@public.post("/tasks", **told(
    {202: "Accepted", 200: "Duplicate"}, "INVALID_TASK UNKNOWN_TASK_TYPE PAYLOAD_TOO_LARGE "
    "IDEMPOTENCY_IN_PROGRESS QUEUE_FULL", body="TaskRequest"))
async def submit(api: Served, request: Request, key: Key = None) -> Response:
    """Submit a task."""
    [(status, body)] = await api.submit(
        request, [requests.with_key(await api.body(request, 1), key)])
    return answer(body, status)


@public.post("/tasks/batch", **told({200: "outcomes: Outcome"}, "INVALID_TASK PAYLOAD_TOO_LARGE",
                                   body="Batch"))
async def submit_batch(api: Served, request: Request) -> Response:
    """Submit up to 1000 tasks, each accepted or refused by itself."""
    body = await api.body(request, BATCH_LIMIT // 100)
    tasks = body.get("tasks") if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(tasks, list) or not 1 <= len(tasks) <= BATCH_LIMIT:
        raise DtqError("INVALID_TASK", 'The body must be {"tasks": [...]} with 1 to '
                                       f"{BATCH_LIMIT} submissions.")
    outcomes = await api.submit(request, tasks)
    return answer({"outcomes": [openapi.Outcome(*outcome) for outcome in outcomes]})


@public.get("/tasks", **told({200: "tasks: Task"}, "INVALID_REQUEST"))
async def list_tasks(api: Served, queue: QueueFilter = None, status: Status = None,
                     limit: Limit = 100) -> Response:
    """Show the newest tasks, newest first."""
    steps = api.operations.tasks(queue=queue, status=status, limit=limit)
    return answer({"tasks": await api.do("list", steps)})


@public.get("/tasks/{task_id}", **told({200: "Task"}, "TASK_NOT_FOUND"))
async def get_task(api: Served, task_id: str) -> Response:
    """Show a task."""
    task = await api.do("get", api.operations.get(task_id))
    if task is None:
        raise DtqError("TASK_NOT_FOUND", f"There is no task {task_id[:200]!r}.")
    return answer(task)


@guarded.post("/tasks/{task_id}/cancel", **told(
    {202: "Accepted"}, "TASK_NOT_FOUND CANCEL_REQUESTED TASK_TERMINAL"))
async def cancel_task(api: Served, by: By, task_id: str) -> Response:
    """Cancel a task that waits, or ask a running one to stop."""
    if await api.do("cancel", api.operations.cancel(task_id, by)) == "requested":
        raise DtqError("CANCEL_REQUESTED", f"Task {task_id} is running. It was asked to stop; "
                                           "no further attempt begins.", task_id=task_id)
    task = await api.do("get", api.operations.get(task_id))
    if task is not None:
        api.metrics.finished(task.queue, task.task_type, "cancelled")
    return answer(Accepted(task_id, "cancelled"), 202)


# Queues and workers -----------------------------------------------------------------------------

@public.get("/queues", **told({200: "queues: QueueStats"}))
async def list_queues(api: Served) -> Response:
    """Show all queues."""
    return answer({"queues": await api.do("stats", api.operations.queues())})


@public.get("/queues/{queue}", **told({200: "QueueStats"}, "QUEUE_NOT_FOUND"))
async def get_queue(api: Served, queue: str) -> Response:
    """Show a queue."""
    return answer(await api.do("stats", api.operations.queue_stats(queue)))


@guarded.post("/queue/{queue}/pause", **told({200: "Paused"}, "INVALID_TASK"))
async def pause_queue(api: Served, by: By, queue: str) -> Response:
    """Let no worker take from a queue."""
    await api.do("pause", api.operations.pause(queue, by))
    return answer(Paused(queue, True))


@guarded.post("/queue/{queue}/resume", **told({200: "Paused"}, "INVALID_TASK"))
async def resume_queue(api: Served, by: By, queue: str) -> Response:
    """Let workers take from a queue again."""
    await api.do("resume", api.operations.resume(queue, by))
    return answer(Paused(queue, False))


@public.get("/workers", **told({200: "workers: WorkerView"}))
async def list_workers(api: Served) -> Response:
    """Show all workers."""
    return answer({"workers": await api.do("workers", api.operations.workers())})


@public.get("/workers/{worker_id}", **told({200: "WorkerView"}, "WORKER_NOT_FOUND"))
async def get_worker(api: Served, worker_id: str) -> Response:
    """Show a worker."""
    return answer(await api.do("workers", api.operations.worker(worker_id)))


# Dead letters -----------------------------------------------------------------------------------

@public.get("/dlq", **told({200: "dead_letters: DeadLetter"}, "INVALID_REQUEST"))
async def list_dead_letters(api: Served, limit: Limit = 100) -> Response:
    """Show the newest dead letters, newest first."""
    letters = await api.do("dead_letters", api.operations.dead_letters(limit))
    return answer({"dead_letters": letters})


@public.get("/dlq/{task_id}", **told({200: "DeadLetter"}, "TASK_NOT_FOUND"))
async def get_dead_letter(api: Served, task_id: str) -> Response:
    """Show a dead letter."""
    return answer(await api.do("dead_letters", api.operations.dead_letter(task_id)))


@guarded.post("/dlq/{task_id}/requeue", **told(
    {200: "Accepted"}, "TASK_NOT_FOUND NOT_REQUEUEABLE IDEMPOTENCY_IN_PROGRESS"))
async def requeue_dead_letter(api: Served, by: By, task_id: str) -> Response:
    """Give a dead-lettered task a new life."""
    await api.do("requeue", api.operations.requeue(task_id, by))
    return answer(Accepted(task_id, "queued"))


@guarded.post("/dlq/{task_id}/discard", **told({200: "Accepted"}, "TASK_NOT_FOUND NOT_REQUEUEABLE"))
async def discard_dead_letter(api: Served, by: By, task_id: str) -> Response:
    """Throw a dead letter away; the task stays dead-lettered."""
    await api.do("discard", api.operations.discard(task_id, by))
    return answer(Accepted(task_id, "dead_lettered"))


@guarded.post("/dlq/purge", **told({200: "Purged"}))
async def purge_dead_letters(api: Served, by: By) -> Response:
    """Throw all dead letters away."""
    return answer(openapi.Purged(await api.do("purge", api.operations.purge_dead_letters(by))))


# The process itself -----------------------------------------------------------------------------

@process.get("/health", **told({200: "Health"}))
async def health() -> Response:
    """Does the process answer? Redis is not asked."""
    return answer(openapi.Health("ok"))


@process.get("/ready", **told({200: "Health"}, "NOT_READY"))
async def ready(api: Served) -> Response:
    """Does Redis take work, and are the consumer groups there?"""
    if reasons := await readiness.check(api.transport.redis, api.operations.keys):
        raise DtqError("NOT_READY", " ".join(reasons))
    return answer(openapi.Health("ready"))


@process.get("/metrics", **told({}), response_class=PlainTextResponse)
async def scrape(api: Served) -> Response:
    """What Prometheus reads."""
    try:
        found = await api.do("stats", metrics.readings(api.operations), limit_s=readiness.LIMIT_S)
    except DtqError as error:
        log.warning("scraped without depths: %s", error)
        found = {}
    return Response(api.metrics.text(found), media_type=api.metrics.content_type)


# The server -------------------------------------------------------------------------------------

def create_app(settings: Settings, known_types: frozenset[str] | None = None) -> FastAPI:
    """The application. With `known_types`, a submission of any other type is refused."""
    api = Api(settings, known_types)
    app = FastAPI(title="dtq", version="3", lifespan=api.lifespan, redirect_slashes=False,
                  redoc_url=None, exception_handlers=requests.HANDLERS,
                  generate_unique_id_function=lambda route: route.name)
    app.state.api = api
    for router in (process, public, guarded):
        app.include_router(router)
    app.add_api_websocket_route(settings.ws_path, api.fanout.serve)
    app.add_middleware(requests.frame)
    app.openapi = lambda: openapi.document(app, (  # type: ignore[method-assign]
        f"Events are sent to WebSocket clients of `{settings.ws_path}` as JSON objects, whose "
        f"`type` is one of {', '.join(EVENT_TYPES)}."), has_key=bool(settings.api_key))
    return app


def server_for(app: FastAPI, settings: Settings) -> tuple[uvicorn.Server, socket.socket]:
    """The server and its bound socket. Events are small, so they are not compressed, and clients
    have nothing long to say. uvicorn's log is quiet, since it would hold what clients put into
    headers. Raises `SettingsError` when the address cannot be listened on."""
    config = uvicorn.Config(app, host=settings.api_host, port=settings.api_port, log_config=None,
                            log_level=logging.WARNING, access_log=False, server_header=False,
                            ws_max_size=4096, ws_per_message_deflate=False,
                            timeout_graceful_shutdown=round(ANSWER_LIMIT_S))
    try:
        listening = config.bind_socket()
    except SystemExit as error:  # uvicorn has logged why
        raise SettingsError(f"DTQ_API_HOST and DTQ_API_PORT: {config.host}:{config.port} cannot "
                            "be listened on.") from error
    # asyncio sees to it only for sockets that it has made; without it each answer waits 40 ms
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return uvicorn.Server(config), listening


def run(settings: Settings, known_types: frozenset[str] | None = None) -> None:
    """Serve until asked to stop (SIGTERM or SIGINT); what was begun is answered first. Raises
    `SettingsError` when the address cannot be listened on."""
    logs.configure(settings)
    server, listening = server_for(create_app(settings, known_types), settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal once more when it has stopped: then this hears it, to no effect
        signal.signal(number, server.handle_exit)
    host, port = listening.getsockname()[:2]
    log.info("serving http://%s:%d", f"[{host}]" if ":" in host else host, port)
    server.run(sockets=[listening])
    log.info("the API has stopped")

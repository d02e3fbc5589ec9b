"""The HTTP API: JSON in, one operation on the queue, JSON out. `dtq api run` serves it.

`ROUTES` is the contract's table: most of its rows name an operation of `offered.py`, which is then
carried out and shown; the few others name a method of `Api`. Any number of API processes run beside
each other; they share nothing but Redis.
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import logging
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, Request, Response
from redis.exceptions import RedisError

from dtq_reference import logs, metrics, openapi, readiness, requests
from dtq_reference.calls import Actor
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.events import EVENT_TYPES, Fanout
from dtq_reference.offered import Filter, Newest, Offered, accepted
from dtq_reference.openapi import BATCH_LIMIT, Route
from dtq_reference.operations import Again, Steps, Submitted, T
from dtq_reference.queue import AsyncQueue
from dtq_reference.requests import answer
from dtq_reference.settings import Settings
from dtq_reference.task import MAX_METADATA_BYTES

log = logging.getLogger("dtq.api")

ANSWER_LIMIT_S = 5.0
"""How long Redis is asked again before a request is answered with 503."""

AT_ONCE = 64
"""Requests that ask Redis at the same time; fewer than the connections that redis-py allows."""

ESCAPED = 6
"""JSON may spell one byte as six, and is measured when it is read."""


class Api:
    """What the routes share: one queue, one subscription, one set of counters."""

    def __init__(self, settings: Settings, known_types: frozenset[str] | None) -> None:
        self.settings = settings
        self.offered = Offered(settings, known_types)
        self.metrics = metrics.Metrics()
        self._queue = AsyncQueue(settings)
        self.fanout = Fanout(self._queue.redis, self.offered.keys.events)
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        """Close all connections when the application has served."""
        yield
        await self._queue.close()

    async def ask(self, route: Route, request: Request) -> Response:
        """Carry out the operation that a route names, and show what it answers."""
        given = dict(request.path_params)
        if route.query is not None:
            given |= requests.parameters(request, route.query)
        if route.needs_key:
            given["by"] = self._authorised(request)
        found = await self.do(route.does.__name__, route.does(self.offered, **given))
        if route.does is Offered.cancel_task and (
                task := await self.do("get", self.offered.get(given["task_id"]))):
            self.metrics.finished(task.queue, task.task_type, "cancelled")
        [(status, shape)] = route.answers.items()
        field = shape.rpartition(": ")[0]
        return answer({field: found} if field else found, status)

    async def do(self, operation: str, steps: Steps[T], *, limit_s: float = ANSWER_LIMIT_S) -> T:
        """Carry out an operation, and count it."""
        try:
            async with asyncio.timeout(limit_s if self._at_once.locked() else None):
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

    def _authorised(self, request: Request) -> Actor:
        """Who asks; refused without the key, where there is one."""
        key, given = self.settings.api_key, request.headers.get("x-api-key")
        if key and given is None:
            raise DtqError("UNAUTHENTICATED", "The header X-API-Key is missing.")
        if key and not hmac.compare_digest((given or "").encode("latin-1"), key.encode()):
            raise DtqError("FORBIDDEN", "The header X-API-Key holds another key.")
        return Actor("api:key" if key else "api:anonymous", request.state.id)

    async def submit(self, request: Request) -> Response:
        """Submit a task."""
        task = requests.with_key(await self._body(request, 1),
                                 request.headers.get("idempotency-key"))
        [(status, body)] = await self._submit(request, [task])
        return answer(body, status)

    async def submit_batch(self, request: Request) -> Response:
        """Submit 1 to 1000 tasks, each accepted or refused by itself."""
        body = await self._body(request, BATCH_LIMIT // 100)
        tasks = body.get("tasks") if isinstance(body, dict) and len(body) == 1 else None
        if not isinstance(tasks, list) or not 1 <= len(tasks) <= BATCH_LIMIT:
            raise DtqError("INVALID_TASK", 'The body must be {"tasks": [...]} with 1 to '
                                           f"{BATCH_LIMIT} submissions.")
        outcomes = await self._submit(request, tasks)
        return answer({"outcomes": [
            {"status": status, "body": body} for status, body in outcomes]})

    async def _body(self, request: Request, times: int) -> Any:
        """The body as JSON, at most `times` as long as one submission can be."""
        limit_bytes = times * ESCAPED * (self.settings.max_payload_bytes + 2 * MAX_METADATA_BYTES)
        try:
            return await requests.read_json(request, limit_bytes=limit_bytes)
        except DtqError as refusal:
            self.metrics.rejected("", refusal.code)
            raise

    async def _submit(self, request: Request, tasks: list[Any]) -> list[tuple[int, Any]]:
        """Submit tasks; the status and the body of the answer to each."""
        answers = await self.do("submit", self.offered.submit_all(tasks))
        return [await self._answer(request, fields, answer)
                for fields, answer in zip(tasks, answers, strict=True)]

    async def _answer(self, request: Request, fields: Any,
                      answer: Submitted | DtqError) -> tuple[int, Any]:
        queue = requests.queue_of(fields)
        if isinstance(answer, DtqError):
            self.metrics.rejected(queue, answer.code)
            return requests.answer_to(answer, request)
        if answer.duplicate:
            task = await self.do("get", self.offered.get(answer.task_id))
            return 200, openapi.Duplicate(**msgspec.structs.asdict(task)) if task else answer
        # the first copy was ours, and lost its answer, where only this process knows the id
        if not isinstance(answer, Again) or "task_id" not in fields:
            self.metrics.submitted(queue, fields["task_type"])
        return 202, accepted(answer.task_id, answer.status)

    async def health(self) -> Response:
        """Does the process answer? Redis is not asked."""
        return answer({"status": "ok"})

    async def ready(self) -> Response:
        """Does Redis take work, and are the consumer groups there?"""
        if reasons := await readiness.check(self._queue.redis, self.offered.keys):
            raise DtqError("NOT_READY", " ".join(reasons))
        return answer({"status": "ready"})

    async def scrape(self) -> Response:
        """What Prometheus reads."""
        try:
            found = await self.do("stats", metrics.readings(self.offered),
                                  limit_s=readiness.LIMIT_S)
        except DtqError as error:
            log.warning("scraped without depths: %s", error)
            found = {}
        return Response(self.metrics.text(found), media_type=self.metrics.content_type)


ROUTES = (
    Route("POST", "/tasks", Api.submit, {202: "Accepted", 200: "Duplicate"},
          "INVALID_TASK UNKNOWN_TASK_TYPE PAYLOAD_TOO_LARGE IDEMPOTENCY_IN_PROGRESS QUEUE_FULL",
          body="TaskRequest", headers=("Idempotency-Key",)),
    Route("POST", "/tasks/batch", Api.submit_batch, {200: "outcomes: Outcome"},
          "INVALID_TASK PAYLOAD_TOO_LARGE", body="Batch"),
    Route("GET", "/tasks", Offered.tasks, {200: "tasks: Task"}, query=Filter),
    Route("GET", "/tasks/{task_id}", Offered.task, {200: "Task"}, "TASK_NOT_FOUND"),
    Route("POST", "/tasks/{task_id}/cancel", Offered.cancel_task, {202: "Accepted"},
          "TASK_NOT_FOUND CANCEL_REQUESTED TASK_TERMINAL"),
    Route("GET", "/queues", Offered.queues, {200: "queues: QueueStats"}),
    Route("GET", "/queues/{queue}", Offered.queue_stats, {200: "QueueStats"}, "QUEUE_NOT_FOUND"),
    Route("GET", "/workers", Offered.workers, {200: "workers: WorkerView"}),
    Route("GET", "/workers/{worker_id}", Offered.worker, {200: "WorkerView"}, "WORKER_NOT_FOUND"),
    Route("GET", "/dlq", Offered.dead_letters, {200: "dead_letters: DeadLetter"}, query=Newest),
    Route("GET", "/dlq/{task_id}", Offered.dead_letter, {200: "DeadLetter"}, "TASK_NOT_FOUND"),
    Route("POST", "/dlq/{task_id}/requeue", Offered.requeue_task, {200: "Accepted"},
          "TASK_NOT_FOUND NOT_REQUEUEABLE IDEMPOTENCY_IN_PROGRESS"),
    Route("POST", "/dlq/{task_id}/discard", Offered.discard_task, {200: "Accepted"},
          "TASK_NOT_FOUND NOT_REQUEUEABLE"),
    Route("POST", "/dlq/purge", Offered.purge_all_letters, {200: "Purged"}),
    Route("POST", "/queue/{queue}/pause", Offered.pause_queue, {200: "Paused"}, "INVALID_TASK"),
    Route("POST", "/queue/{queue}/resume", Offered.resume_queue, {200: "Paused"}, "INVALID_TASK"),
    Route("GET", "/health", Api.health, {200: "Health"}, prefix=""),
    Route("GET", "/ready", Api.ready, {200: "Health"}, "NOT_READY", prefix=""),
    Route("GET", "/metrics", Api.scrape, {200: "text/plain"}, prefix=""))


def create_app(settings: Settings, known_types: frozenset[str] | None = None) -> FastAPI:
    """The application. With `known_types`, a submission of any other type is refused."""
    api = Api(settings, known_types)
    app = FastAPI(title="dtq", version="3", lifespan=api.lifespan, redirect_slashes=False,
                  redoc_url=None, exception_handlers=requests.HANDLERS,
                  # nobody is told of requests but by the log and the metrics
                  telemetry={"tracing": False, "metrics": False, "logs": False}, description=(
                      f"Events are sent to WebSocket clients of `{settings.ws_path}` as JSON "
                      f"objects, whose `type` is one of {', '.join(EVENT_TYPES)}."))
    for route in ROUTES:
        endpoint = partial(route.does, api) if inspect.iscoroutinefunction(route.does) else \
            partial(api.ask, route)
        app.add_api_route(route.prefix + route.path, endpoint, response_class=Response,
                          **openapi.operation(route, has_key=bool(settings.api_key)))
    app.add_api_websocket_route(settings.ws_path, api.fanout.serve)
    app.add_middleware(requests.frame)
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]
    return app


def server_for(app: FastAPI, settings: Settings) -> tuple[uvicorn.Server, socket.socket]:
    """The server and its bound socket. Events are small, so they are not compressed, and clients
    have nothing long to say. uvicorn's log is quiet, since it would hold what clients put into
    headers. Raises `SettingsError` when the address cannot be listened on."""
    config = uvicorn.Config(app, host=settings.api_host, port=settings.api_port, log_config=None,
                            log_level=logging.WARNING, access_log=False, server_header=False,
                            proxy_headers=False, ws_max_size=4096, ws_per_message_deflate=False,
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

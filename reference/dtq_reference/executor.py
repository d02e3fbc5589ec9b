"""Execute one attempt: call the handler within its time limit, and tell how it ended.

Comes in: a task that `take` handed over. Goes out: an `Outcome`, which the worker settles.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from dtq_reference import handlers, logs, signing
from dtq_reference.calls import Outcome, Taken
from dtq_reference.errors import DtqError
from dtq_reference.handlers import Handler, TaskContext
from dtq_reference.keys import LEVELS
from dtq_reference.settings import Settings
from dtq_reference.task import encode_json

if TYPE_CHECKING:
    from dtq_reference.process_pool import ProcessPool

MAX_ERROR_MESSAGE = 500

CANCEL_LIMIT_S = 0.1
"""How long a handler may take to end once it is cancelled at its time limit."""


class Failure(msgspec.Struct, frozen=True):
    """How an attempt failed."""

    error_class: str
    message: str
    retryable: bool


class Executor:
    """Runs handlers: async ones on the loop, sync ones in threads, or in the processes of `pool`.

    `freed` is called when a handler ends that had outlived its attempt, `stuck` when such handlers
    have held every slot for one visibility timeout.
    """

    def __init__(self, settings: Settings, worker_id: str, *, freed: Callable[[], None],
                 stuck: Callable[[], None], pool: ProcessPool | None = None) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._freed = freed
        self._stuck = stuck
        self._pool = pool
        self._threads = ThreadPoolExecutor(settings.worker_concurrency, thread_name_prefix="task")
        self._awaited: dict[tuple[int, str, int, str], asyncio.Task[Any]] = {}
        self._asked: set[asyncio.Future[Any]] = set()
        self._overdue: set[asyncio.Future[Any]] = set()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def all_overdue(self) -> bool:
        """Whether no slot is left for work."""
        return self.overdue >= self._settings.worker_concurrency

    @property
    def overdue(self) -> int:
        """Handlers that still run although their attempt was settled at its time limit."""
        return len(self._overdue)

    async def execute(self, taken: Taken) -> Outcome:
        """Run the handler of this attempt to an end, or to its time limit. Never raises."""
        began = time.monotonic()
        try:
            ended = await self._run(taken)
        except Exception as error:
            ended = failure_of(error)
        duration_ms = round(1000 * (time.monotonic() - began))
        if not isinstance(ended, Failure):
            return Outcome(taken, duration_ms, ended)
        delay_ms = retry_delay_ms(taken.attempt, self._settings) if ended.retryable else 0
        return Outcome(taken, duration_ms, error_class=ended.error_class,
                       error_message=ended.message, retryable=ended.retryable, delay_ms=delay_ms)

    def cancel(self, taken: Taken) -> None:
        """Cancel the handler of an attempt if it is awaited: once, so that it can clear up. A
        handler in a thread or process runs out."""
        running = self._awaited.get(taken.hold)
        if running is not None and running not in self._asked:
            self._asked.add(running)
            running.cancel()

    async def _run(self, taken: Taken) -> bytes | Failure:
        if self._settings.signing_key:
            _check_signature(self._settings.signing_key, taken)
        handler = handlers.find(taken.task_type)
        if handler is None:
            raise UnknownTaskType(f"unknown_task_type:{taken.task_type}")
        limit_s = taken.timeout_ms / 1000
        context = TaskContext(taken.task_id, taken.attempt, self._worker_id, taken.queue,
                              time.monotonic() + limit_s, taken.idempotency_key)
        if self._pool is not None and not handler.is_async:
            return await self._pool.run(taken.task_type, taken.payload, context, limit_s=limit_s)
        payload = msgspec.json.decode(taken.payload)
        loop = asyncio.get_running_loop()
        running: asyncio.Future[Any]
        if handler.is_async:
            running = self._awaited[taken.hold] = loop.create_task(
                _contained(handler.function(payload, context)))
        else:
            running = loop.run_in_executor(self._threads, contain, handler.function, payload,
                                           context)
        await asyncio.wait({running}, timeout=limit_s)
        self._awaited.pop(taken.hold, None)
        was_asked = running in self._asked
        self._asked.discard(running)
        if not running.done():
            await self._give_up(running, handler.is_async)
            raise TimeoutError(f"the handler ran longer than {taken.timeout_ms} ms")
        if running.cancelled():
            raise Cancelled("cancelled on request") if was_asked else Escaped(
                asyncio.CancelledError())
        return bounded_result(running.result(), self._settings.result_max_bytes)

    async def _give_up(self, running: asyncio.Future[Any], is_async: bool) -> None:
        """Cancel a handler at its time limit. A thread, or a coroutine that does not listen, runs
        on: its slot stays taken until it ends, and what it returns is ignored."""
        if is_async:
            running.cancel()
            await asyncio.wait({running}, timeout=CANCEL_LIMIT_S)
        if not running.done():
            self._overdue.add(running)
        if self.all_overdue and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(
                self._settings.visibility_timeout_s, self._stuck)
        running.add_done_callback(self._forget)

    def _forget(self, running: asyncio.Future[Any]) -> None:
        self._overdue.discard(running)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not running.cancelled():
            running.exception()  # looked at, so that asyncio does not report it
        self._freed()


def failure_of(error: Exception) -> Failure:
    """What is recorded of an exception, whatever it says."""
    raised = error.raised if isinstance(error, Escaped) else error
    try:
        message = logs.clean(" ".join(str(raised).split()))[:MAX_ERROR_MESSAGE]
    except Exception as second:
        message = f"its words cannot be had: {type(second).__name__}"
    return Failure(type(raised).__name__, message, isinstance(raised, handlers.RETRYABLE))


def _check_signature(key: str, taken: Taken) -> None:
    """An entry's priority is that of the stream it was taken from."""
    priority = LEVELS[taken.level - 1]
    if not signing.is_genuine(key, taken, taken.payload.decode(), priority, taken.signature):
        state = "is wrong" if taken.signature else "is missing"
        raise BadSignature(f"the entry's signature {state}; the task was not executed")


class BadSignature(Exception):
    """Nobody who has the key signed this entry as it is: a permanent failure."""


class Cancelled(Exception):
    """A cancellation was requested, and the handler ended by it."""


class Escaped(Exception):
    """A handler raised what asyncio or a thread would not pass on as it is: SystemExit and its
    like, StopIteration, a CancelledError of its own. For the handler it is a permanent failure."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__(repr(raised))
        self.raised = raised


async def _contained(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await coroutine
    except asyncio.CancelledError:
        raise
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration) as raised:
        raise Escaped(raised) from raised


def contain(function: Handler, payload: dict[str, Any], context: TaskContext) -> Any:
    """Call a sync handler; what would end more than the handler is raised as `Escaped`."""
    try:
        return function(payload, context)
    except (asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit,
            StopIteration) as raised:
        raise Escaped(raised) from raised


class UnknownTaskType(Exception):
    """No handler of this name is registered here: a permanent failure."""


class ResultNotJson(Exception):
    """A handler returned a value that has no JSON form: a permanent failure."""


def retry_delay_ms(attempt: int, settings: Settings, draw: float | None = None) -> int:
    """Milliseconds to wait after failed attempt n.

    min(max_delay, base * 2^(n-1)) * (1 + uniform(-jitter, +jitter)), section 4 of the contract;
    `draw` in [-1, 1] stands for the random number.
    """
    exponential_s = min(settings.retry_max_delay, settings.retry_base_delay * 2.0 ** (attempt - 1))
    draw = random.uniform(-1, 1) if draw is None else draw
    return max(0, round(1000 * exponential_s * (1 + draw * settings.retry_jitter)))


def bounded_result(value: Any, limit_bytes: int) -> bytes:
    """A handler's value as JSON; one that is too long becomes a marked, valid excerpt of it."""
    try:
        encoded = encode_json(value, "the result")
    except DtqError as error:
        raise ResultNotJson(error.message) from error
    if len(encoded) <= limit_bytes:
        return encoded
    excerpt = encoded[: max(0, limit_bytes // 2 - 40)].decode(errors="ignore")
    return msgspec.json.encode({"truncated": True, "bytes": len(encoded), "excerpt": excerpt})

"""Execute one attempt: call the handler within its time limit, and tell how it ended.

Comes in: a task that `take` handed over. Goes out: an `Outcome`, which the worker settles.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from dtq_reference import handlers
from dtq_reference.calls import Outcome, Taken
from dtq_reference.errors import DtqError
from dtq_reference.handlers import Handler, TaskContext
from dtq_reference.settings import Settings
from dtq_reference.task import encode_json

MAX_ERROR_MESSAGE = 500

CANCEL_LIMIT_S = 0.1
"""How long a handler may take to end once it is cancelled at its time limit."""


class Executor:
    """Runs handlers: async ones on the loop, sync ones in threads.

    `freed` is called when a handler ends that had outlived its attempt.
    """

    def __init__(self, settings: Settings, worker_id: str, *, freed: Callable[[], None]) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._freed = freed
        self._threads = ThreadPoolExecutor(settings.worker_concurrency, thread_name_prefix="task")
        self._overdue: set[asyncio.Future[Any]] = set()

    @property
    def overdue(self) -> int:
        """Handlers that still run although their attempt was settled at its time limit."""
        return len(self._overdue)

    async def execute(self, taken: Taken) -> Outcome:
        """Run the handler of this attempt to an end, or to its time limit. Never raises."""
        began = time.monotonic()
        try:
            value = await self._run(taken)
            result = bounded_result(value, self._settings.result_max_bytes)
        except Exception as error:
            return self._failure(taken, began, error)
        return Outcome(taken, _elapsed_ms(began), result)

    async def _run(self, taken: Taken) -> Any:
        handler = handlers.find(taken.task_type)
        if handler is None:
            raise UnknownTaskType(f"unknown_task_type:{taken.task_type}")
        payload = msgspec.json.decode(taken.payload)
        limit_s = taken.timeout_ms / 1000
        context = TaskContext(taken.task_id, taken.attempt, self._worker_id, taken.queue,
                              time.monotonic() + limit_s)
        loop = asyncio.get_running_loop()
        running: asyncio.Future[Any]
        if handler.is_async:
            running = loop.create_task(_contained(handler.function(payload, context)))
        else:
            running = loop.run_in_executor(self._threads, _contain, handler.function, payload,
                                           context)
        done, _ = await asyncio.wait({running}, timeout=limit_s)
        if not done:
            await self._give_up(running, handler.is_async)
            raise TimeoutError(f"the handler ran longer than {taken.timeout_ms} ms")
        if running.cancelled():
            raise Escaped(asyncio.CancelledError())
        return running.result()

    async def _give_up(self, running: asyncio.Future[Any], is_async: bool) -> None:
        """Cancel a handler at its time limit. A thread, or a coroutine that does not listen, runs
        on: its slot stays taken until it ends, and what it returns is ignored."""
        if is_async:
            running.cancel()
            await asyncio.wait({running}, timeout=CANCEL_LIMIT_S)
        if not running.done():
            self._overdue.add(running)
        running.add_done_callback(self._forget)

    def _forget(self, running: asyncio.Future[Any]) -> None:
        self._overdue.discard(running)
        if not running.cancelled():
            running.exception()  # looked at, so that asyncio does not report it
        self._freed()

    def _failure(self, taken: Taken, began: float, error: Exception) -> Outcome:
        raised = error.raised if isinstance(error, Escaped) else error
        retryable = isinstance(raised, handlers.RETRYABLE)
        delay_ms = retry_delay_ms(taken.attempt, self._settings) if retryable else 0
        message = " ".join(str(raised).split())[:MAX_ERROR_MESSAGE]
        return Outcome(taken, _elapsed_ms(began), error_class=type(raised).__name__,
                       error_message=message, retryable=retryable, delay_ms=delay_ms)


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


def _contain(function: Handler, payload: dict[str, Any], context: TaskContext) -> Any:
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


def _elapsed_ms(began: float) -> int:
    return round(1000 * (time.monotonic() - began))

"""Execute one attempt: call the handler within its time limit, and tell how it ended.

Comes in: a task that `take` handed over. Goes out: an `Outcome`, which the worker settles.
"""

from __future__ import annotations

import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from dtq_reference import handlers
from dtq_reference.calls import Outcome, Taken
from dtq_reference.handlers import TaskContext
from dtq_reference.settings import Settings

MAX_ERROR_MESSAGE = 500


class Executor:
    """Runs handlers: async ones on the loop, sync ones in threads."""

    def __init__(self, settings: Settings, worker_id: str) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._threads = ThreadPoolExecutor(settings.worker_concurrency, thread_name_prefix="task")
        self._overdue: set[asyncio.Future[Any]] = set()

    @property
    def overdue(self) -> int:
        """Threads that still run a handler whose attempt was settled at its time limit."""
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
        if handler.is_async:
            async with asyncio.timeout(limit_s):
                return await handler.function(payload, context)
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, handler.function, payload, context)
        done, _ = await asyncio.wait({running}, timeout=limit_s)
        if not done:
            self._overdue.add(running)
            running.add_done_callback(self._overdue.discard)
            running.add_done_callback(_drop_result)
            raise TimeoutError(f"the handler ran longer than {taken.timeout_ms} ms")
        return running.result()

    def _failure(self, taken: Taken, began: float, error: Exception) -> Outcome:
        retryable = isinstance(error, handlers.RETRYABLE)
        delay_ms = retry_delay_ms(taken.attempt, self._settings) if retryable else 0
        message = " ".join(str(error).split())[:MAX_ERROR_MESSAGE]
        return Outcome(taken, _elapsed_ms(began), error_class=type(error).__name__,
                       error_message=message, retryable=retryable, delay_ms=delay_ms)


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
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ResultNotJson(f"the result is not JSON: {error}") from error
    if len(encoded) <= limit_bytes:
        return encoded
    excerpt = encoded[: max(0, limit_bytes // 2 - 40)].decode(errors="ignore")
    return msgspec.json.encode({"truncated": True, "bytes": len(encoded), "excerpt": excerpt})


def _elapsed_ms(began: float) -> int:
    return round(1000 * (time.monotonic() - began))


def _drop_result(running: asyncio.Future[Any]) -> None:
    """Look at a late outcome, so that asyncio does not report it as never retrieved."""
    if not running.cancelled():
        running.exception()

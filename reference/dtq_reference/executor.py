"""Execute one attempt: call the handler within its time limit, and tell how it ended.

Comes in: a task that `take` handed over. Goes out: an `Outcome`, which the worker settles.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from dtq_reference import handlers, logs, signing
from dtq_reference.calls import Outcome, Taken
from dtq_reference.errors import DtqError
from dtq_reference.handlers import TaskContext
from dtq_reference.hands import Hands, Hold, log
from dtq_reference.process_pool import ProcessPool
from dtq_reference.settings import Settings
from dtq_reference.task import encode_json

MAX_ERROR_MESSAGE = 500

OVERDUE_EXIT_CODE = 4
"""How a worker ends whose every slot is held by a handler that outlived its time limit: whoever
watches over it should start another."""

CANCEL_LIMIT_S = 0.1
"""How long a handler may take to end once it is cancelled at its time limit."""


class Executor:
    """Runs handlers: async ones on the loop, sync ones in threads, or (DTQ_PROCESS_POOL) in child
    processes. Lets the worker end when handlers past their time limit have held every slot for one
    visibility timeout.
    """

    def __init__(self, hands: Hands, settle: Callable[[Hold, Outcome], None]) -> None:
        self._hands = hands
        self._settle = settle
        self._settings = hands.settings
        self._pool = ProcessPool(hands.settings) if hands.settings.process_pool else None
        self._threads = ThreadPoolExecutor(hands.settings.worker_concurrency, "task")

    def start(self, hold: Hold) -> None:
        """Execute an attempt, unless it is too late for that when its turn comes. How it ended,
        by itself or at its time limit, is handed in to be settled."""
        hold.execution = asyncio.get_running_loop().create_task(self._execute(hold))

    async def _execute(self, hold: Hold) -> None:
        hands = self._hands
        if hands.draining.is_set() or time.monotonic() >= hold.lease_until:
            log.warning("task %s: draining, or its lease has ended", hold.taken.task_id)
            hands.drop(hold)
            return
        hold.started, hold.began = True, time.monotonic()
        limit = asyncio.get_running_loop().call_later(
            hold.taken.timeout_ms / 1000, self._limit_reached, hold)
        try:
            outcome = await self._run(hold, limit)
        except BaseException as error:
            outcome = self._failure(hold, error)
        limit.cancel()
        if hold.execution in hands.overdue:
            hands.overdue.discard(hold.execution)
            hands.changed.set()
        else:
            self._end(hold, _too_long(hold) if hold.is_late else outcome)

    async def _run(self, hold: Hold, limit: asyncio.TimerHandle) -> Outcome:
        taken, key = hold.taken, self._settings.signing_key
        if key and not signing.is_genuine(key, taken):
            state = "is wrong" if taken.signature else "is missing"
            raise BadSignature(f"the entry's signature {state}; the task was not executed")
        attempt = taken, self._hands.identity.worker_id, self._settings.result_max_bytes
        function = handlers.find(taken.task_type)
        if _is_async(function):
            hold.is_awaited = True
            value = await function(*_arguments(*attempt[:2]))
            return Outcome(taken, result=bounded_result(value, self._settings.result_max_bytes))
        loop = asyncio.get_running_loop()
        if self._pool is None:
            return await loop.run_in_executor(self._threads, call_handler, *attempt)
        limit.cancel()  # the pool keeps to the limit by itself
        return await loop.run_in_executor(
            self._threads, self._pool.run, taken.timeout_ms / 1000, call_handler, *attempt)

    def _failure(self, hold: Hold, error: BaseException) -> Outcome:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            error = Cancelled("cancelled on request")
        return failure(hold.taken, error)

    def _end(self, hold: Hold, outcome: Outcome) -> None:
        outcome.duration_ms = round(1000 * (time.monotonic() - hold.began))
        if outcome.retryable:
            outcome.delay_ms = retry_delay_ms(hold.taken.attempt, self._settings)
        self._settle(hold, outcome)

    def _limit_reached(self, hold: Hold) -> None:
        """Cancel a handler at its time limit, if it is one that can be cancelled."""
        hold.is_late = True
        if hold.is_awaited and hold.execution is not None:
            hold.execution.cancel()
            asyncio.get_running_loop().call_later(CANCEL_LIMIT_S, self._give_up, hold)
        else:
            self._give_up(hold)

    def _give_up(self, hold: Hold) -> None:
        """Settle an attempt whose handler runs on, in a thread or since it did not listen. Its slot
        stays taken until it ends, and what it returns is ignored."""
        hands, execution = self._hands, hold.execution
        if execution is None or execution.done():
            return
        hands.overdue.add(execution)
        self._end(hold, _too_long(hold))
        if hands.status == "overdue":
            asyncio.get_running_loop().call_later(
                self._settings.visibility_timeout_s, self._end_stuck, set(hands.overdue))

    def _end_stuck(self, overdue: set[asyncio.Task[None]]) -> None:
        hands = self._hands
        if hands.overdue == overdue and not hands.draining.is_set():
            hands.exit_code = OVERDUE_EXIT_CODE
            log.error("all %d slots have been held for %g s by handlers past their time limit",
                      len(overdue), self._settings.visibility_timeout_s)
            hands.drain()


class BadSignature(Exception):
    """Nobody who has the key signed this entry as it is: a permanent failure."""


class Cancelled(Exception):
    """A cancellation was requested, and the handler ended by it."""


class ResultNotJson(Exception):
    """A handler returned a value that has no JSON form: a permanent failure."""


_is_async = functools.cache(inspect.iscoroutinefunction)


def call_handler(taken: Taken, worker_id: str, result_max_bytes: int) -> Outcome:
    """How a sync handler ends, whatever it raises: a SystemExit would end more than the handler,
    and a StopIteration is nothing that a future can pass on."""
    try:
        value = handlers.find(taken.task_type)(*_arguments(taken, worker_id))
        return Outcome(taken, result=bounded_result(value, result_max_bytes))
    except BaseException as error:
        return failure(taken, error)


def _arguments(taken: Taken, worker_id: str) -> tuple[dict[str, Any], TaskContext]:
    return msgspec.json.decode(taken.payload), TaskContext(
        taken.task_id, taken.attempt, worker_id, taken.queue,
        time.monotonic() + taken.timeout_ms / 1000, taken.idempotency_key)


def failure(taken: Taken, error: BaseException) -> Outcome:
    """What is recorded of an exception, whatever it says."""
    try:
        message = logs.clean(" ".join(str(error).split()))[:MAX_ERROR_MESSAGE]
    except Exception as second:
        message = f"its words cannot be had: {type(second).__name__}"
    return Outcome(taken, error_class=type(error).__name__, error_message=message,
                   retryable=isinstance(error, handlers.RETRYABLE))


def _too_long(hold: Hold) -> Outcome:
    return failure(hold.taken, TimeoutError(
        f"the handler ran longer than {hold.taken.timeout_ms} ms"))


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

"""Handlers: the functions that execute tasks, registered by name. Nothing else is ever run.

Here is also what a handler may use: its context, the errors that it may raise, and
`idempotent_operation`; and the hook that hears of finished tasks.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import redis.asyncio
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from dtq_reference import settings
from dtq_reference.calls import Outcome
from dtq_reference.errors import RetryableError, SettingsError
from dtq_reference.keys import Keys
from dtq_reference.states import TERMINAL
from dtq_reference.task import encode_json

log = logging.getLogger("dtq.handlers")

Handler = Callable[[dict[str, Any], "TaskContext"], Any]

RETRYABLE = (RetryableError, TimeoutError, RedisConnectionError, RedisTimeoutError)
"""Errors after which another attempt may succeed; every other exception is permanent."""


@dataclass(frozen=True)
class TaskContext:
    """What a handler is told about the attempt that it executes.

    `deadline` is on the clock of `time.monotonic()`; at that moment the attempt is settled as a
    TimeoutError and what the handler returns later is ignored. `idempotency_key` is "" if the
    task has none.
    """

    task_id: str
    attempt: int
    worker_id: str
    queue: str
    deadline: float
    idempotency_key: str = ""


@dataclass(frozen=True)
class Registered:
    """A handler and whether it is awaited (async) or runs in a thread."""

    function: Handler
    is_async: bool


_registry: dict[str, Registered] = {}
_modules: list[str] = []


def task(name: str) -> Callable[[Handler], Handler]:
    """Register a function `fn(payload, ctx)` as the handler of task type `name`."""

    def register(function: Handler) -> Handler:
        _registry[name] = Registered(function, inspect.iscoroutinefunction(function))
        return function

    return register


def find(name: str) -> Registered | None:
    """The handler of a task type, or None."""
    return _registry.get(name)


def names() -> frozenset[str]:
    """The task types that have a handler here."""
    return frozenset(_registry)


def load_modules(names: list[str]) -> None:
    """Import the modules whose handlers a worker offers. Raises `SettingsError`."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise SettingsError(f"The task module {name!r} cannot be imported: {error}.") from error
        _modules.append(name)


def loaded_modules() -> list[str]:
    """The modules that were loaded: a child process loads the same."""
    return list(_modules)


# Operations that are done once --------------------------------------------------------------------

def idempotent_operation(client: Any, key: str, ttl_s: float, fn: Callable[[], Any]) -> Any:
    """The result of `fn()`, or, within `ttl_s` of its record, the result recorded for this key.

    Once the result is recorded `fn` is not run again for the key; a crash before that may repeat
    it. With an asynchronous client this is awaited, and `fn` may be asynchronous too. The record
    is JSON under DTQ_KEY_PREFIX. Raises `DtqError` if the result has no JSON form.
    """
    name = Keys(settings.load().key_prefix).once_prefix + key
    ttl_ms = max(1, round(ttl_s * 1000))
    if isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster):
        return _awaited_operation(client, name, ttl_ms, fn)
    record = client.get(name)
    if record is None:
        done = encode_json(fn(), "the result")
        record = client.set(name, done, nx=True, get=True, px=ttl_ms) or done
    return msgspec.json.decode(record)


async def _awaited_operation(client: Any, name: str, ttl_ms: int, fn: Callable[[], Any]) -> Any:
    record = await client.get(name)
    if record is None:
        value = fn()
        done = encode_json(await value if inspect.isawaitable(value) else value, "the result")
        record = await client.set(name, done, nx=True, get=True, px=ttl_ms) or done
    return msgspec.json.decode(record)


# The hook -----------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Finished:
    """A task that an attempt in this process ended: `result` of a success, else what failed."""

    task_id: str
    task_type: str
    queue: str
    status: str
    attempt: int
    result: Any = None
    error_class: str | None = None
    error_message: str = ""


Hook = Callable[[Finished], Any]

_hooks: list[Hook] = []
_hearing: set[asyncio.Task[None]] = set()


def on_completion(function: Hook) -> Hook:
    """Register a function, sync or async, that is called with each finished task after it was
    settled, at most once: a crash may skip it. Whatever it raises is logged, and no more."""
    _hooks.append(function)
    return function


def completed(outcome: Outcome, state: str) -> None:
    """Tell the hooks, on the running loop, of an attempt whose settlement led to `state`."""
    if not _hooks or state not in TERMINAL:
        return
    taken = outcome.taken
    finished = Finished(
        taken.task_id, taken.task_type, taken.queue, state, taken.attempt,
        msgspec.json.decode(outcome.result), outcome.error_class, outcome.error_message)
    for hook in _hooks:
        hearing = asyncio.get_running_loop().create_task(_tell(hook, finished))
        _hearing.add(hearing)
        hearing.add_done_callback(_hearing.discard)


async def _tell(hook: Hook, finished: Finished) -> None:
    try:
        if inspect.iscoroutinefunction(hook):
            await hook(finished)
        else:
            await asyncio.to_thread(hook, finished)
    except Exception:
        log.exception("the completion hook failed for task %s", finished.task_id)


async def hooks_done(limit_s: float) -> None:
    """Wait until every hook that was called has ended, or until the time is up."""
    if _hearing:
        await asyncio.wait(_hearing, timeout=limit_s)

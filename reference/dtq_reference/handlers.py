"""Handlers: the functions that execute tasks, registered by name. Nothing else is ever run.

Here is also what a handler may use: its context, the errors that it may raise, and
`idempotent_operation`; and the hook that hears of finished tasks.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from redis import exceptions

from dtq_reference import settings
from dtq_reference.calls import Outcome
from dtq_reference.errors import RetryableError, SettingsError
from dtq_reference.keys import Keys
from dtq_reference.states import TERMINAL
from dtq_reference.task import encode_json

log = logging.getLogger("dtq.handlers")

Handler = Callable[[dict[str, Any], "TaskContext"], Any]

RETRYABLE = (RetryableError, TimeoutError, exceptions.ConnectionError, exceptions.TimeoutError)
"""Errors after which another attempt may succeed; every other exception is permanent."""


class TaskContext(msgspec.Struct, frozen=True, gc=False):
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


class UnknownTaskType(Exception):
    """No handler of this name is registered here: a permanent failure."""


_registry: dict[str, Handler] = {}

modules: list[str] = []
"""The modules that were loaded: a child process loads the same."""


def task(name: str) -> Callable[[Handler], Handler]:
    """Register a function `fn(payload, ctx)` as the handler of task type `name`. An async one is
    awaited, any other runs in a thread or a child process."""

    def register(function: Handler) -> Handler:
        _registry[name] = function
        return function

    return register


def find(name: str) -> Handler:
    """The handler of a task type. Raises `UnknownTaskType`."""
    if name not in _registry:
        raise UnknownTaskType(f"unknown_task_type:{name}")
    return _registry[name]


def names() -> frozenset[str]:
    """The task types that have a handler here."""
    return frozenset(_registry)


def load_modules(names: list[str]) -> None:
    """Import the modules whose handlers a worker offers. Raises `SettingsError`."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # whatever a module does at its import
            raise SettingsError(f"Task module {name!r} cannot be imported: {error!r}.") from error
        modules.append(name)


# Operations that are done once --------------------------------------------------------------------

def idempotent_operation(client: Any, key: str, ttl_s: float, fn: Callable[[], Any]) -> Any:
    """The result of `fn()`, or, within `ttl_s` of its record, the result recorded for this key.

    Once the result is recorded `fn` is not run again for the key; a crash before that may repeat
    it. With an asynchronous client this is awaited, and `fn` may be asynchronous too. The record
    is JSON under DTQ_KEY_PREFIX. Raises `DtqError` if the result has no JSON form.
    """
    name = Keys(settings.load().key_prefix).once_prefix + key
    ttl_ms = max(1, round(ttl_s * 1000))
    record = client.get(name)
    if inspect.isawaitable(record):
        return _awaited_operation(client, record, name, ttl_ms, fn)
    if record is None:
        done = encode_json(fn(), "the result")
        record = client.set(name, done, nx=True, get=True, px=ttl_ms) or done
    return msgspec.json.decode(record)


async def _awaited_operation(client: Any, reading: Awaitable[bytes | None], name: str, ttl_ms: int,
                             fn: Callable[[], Any]) -> Any:
    record = await reading
    if record is None:
        value = fn()
        done = encode_json(await value if inspect.isawaitable(value) else value, "the result")
        record = await client.set(name, done, nx=True, get=True, px=ttl_ms) or done
    return msgspec.json.decode(record)


# The hook -----------------------------------------------------------------------------------------

Hook = Callable[[Outcome, str], Any]

_hooks: list[Hook] = []
_hearing: set[asyncio.Task[None]] = set()


def on_completion(function: Hook) -> Hook:
    """Register a function `fn(outcome, status)`, sync or async, that hears of each finished task
    after it was settled, at most once: a crash may skip it. Whatever it raises is logged, and no
    more."""
    _hooks.append(function)
    return function


def completed(outcome: Outcome, state: str) -> None:
    """Tell the hooks, on the running loop, of an attempt whose settlement led to `state`."""
    if state in TERMINAL:
        for hook in _hooks:
            hearing = asyncio.get_running_loop().create_task(_tell(hook, outcome, state))
            _hearing.add(hearing)
            hearing.add_done_callback(_hearing.discard)


async def _tell(hook: Hook, outcome: Outcome, status: str) -> None:
    try:
        heard = await asyncio.to_thread(hook, outcome, status)
        if inspect.isawaitable(heard):
            await heard
    except Exception:
        log.exception("the completion hook failed for task %s", outcome.taken.task_id)


async def hooks_done(limit_s: float) -> None:
    """Wait until every hook that was called has ended, or until the time is up."""
    if _hearing:
        await asyncio.wait(_hearing, timeout=limit_s)

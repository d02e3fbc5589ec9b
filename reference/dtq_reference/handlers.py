"""Handlers: the functions that execute tasks, registered by name. Nothing else is ever run."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from dtq_reference.errors import RetryableError, SettingsError

Handler = Callable[[dict[str, Any], "TaskContext"], Any]

RETRYABLE = (RetryableError, TimeoutError, RedisConnectionError, RedisTimeoutError)
"""Errors after which another attempt may succeed; every other exception is permanent."""


@dataclass(frozen=True)
class TaskContext:
    """What a handler is told about the attempt that it executes.

    `deadline` is on the clock of `time.monotonic()`; at that moment the attempt is settled as a
    TimeoutError and what the handler returns later is ignored.
    """

    task_id: str
    attempt: int
    worker_id: str
    queue: str
    deadline: float


@dataclass(frozen=True)
class Registered:
    """A handler and whether it is awaited (async) or runs in a thread."""

    function: Handler
    is_async: bool


_registry: dict[str, Registered] = {}


def task(name: str) -> Callable[[Handler], Handler]:
    """Register a function `fn(payload, ctx)` as the handler of task type `name`."""

    def register(function: Handler) -> Handler:
        _registry[name] = Registered(function, inspect.iscoroutinefunction(function))
        return function

    return register


def find(name: str) -> Registered | None:
    """The handler of a task type, or None."""
    return _registry.get(name)


def load_modules(names: list[str]) -> None:
    """Import the modules whose handlers a worker offers. Raises `SettingsError`."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise SettingsError(f"The task module {name!r} cannot be imported: {error}.") from error

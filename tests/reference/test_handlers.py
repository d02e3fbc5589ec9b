"""Handlers: registered by name, looked up by name, and nothing else is ever run."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_reference import handlers
from dtq_reference.errors import PermanentError, RetryableError, SettingsError
from dtq_reference.handlers import TaskContext, task
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_registry", {})


def test_a_function_is_found_by_the_name_it_was_registered_under() -> None:
    @task("awaited")
    async def awaited(payload: dict[str, Any], ctx: TaskContext) -> None: ...

    @task("called")
    def called(payload: dict[str, Any], ctx: TaskContext) -> None: ...

    assert handlers.find("awaited") == handlers.Registered(awaited, True)
    assert handlers.find("called") == handlers.Registered(called, False)


@pytest.mark.parametrize("name", ["", "nobody", "os.system", "__import__", "find"])
def test_a_name_that_nobody_registered_is_nothing(name: str) -> None:
    assert handlers.find(name) is None


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(SettingsError, match="'no_such_module' cannot be imported"):
        handlers.load_modules(["no_such_module"])


@pytest.mark.parametrize(("error", "is_retryable"), [
    (RetryableError(), True), (TimeoutError(), True), (RedisConnectionError(), True),
    (RedisTimeoutError(), True), (PermanentError(), False), (ValueError(), False),
    (ConnectionError(), False), (KeyError(), False)])
def test_the_errors_after_which_another_attempt_may_succeed_are_those_of_the_contract(
        error: Exception, is_retryable: bool) -> None:
    assert isinstance(error, handlers.RETRYABLE) == is_retryable

"""Handlers: registered by name, looked up by name, and nothing else is ever run; operations that
are done once; and the hook that hears of finished tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from dtq_reference import handlers
from dtq_reference.calls import Outcome, Taken
from dtq_reference.errors import DtqError, PermanentError, RetryableError, SettingsError
from dtq_reference.handlers import TaskContext, idempotent_operation, task
from dtq_reference.transport import AsyncTransport
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from tests.reference.engine import Engine


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_registry", {})
    monkeypatch.setattr(handlers, "modules", [])
    monkeypatch.setattr(handlers, "_hooks", [])


def test_a_function_is_found_by_the_name_it_was_registered_under() -> None:
    @task("awaited")
    async def awaited(payload: dict[str, Any], ctx: TaskContext) -> None: ...

    @task("called")
    def called(payload: dict[str, Any], ctx: TaskContext) -> None: ...

    assert handlers.find("awaited") is awaited
    assert handlers.find("called") is called
    assert handlers.names() == {"awaited", "called"}


@pytest.mark.parametrize("name", ["", "nobody", "os.system", "__import__", "find"])
def test_a_name_that_nobody_registered_is_nothing(name: str) -> None:
    with pytest.raises(handlers.UnknownTaskType, match=f"unknown_task_type:{name}"):
        handlers.find(name)


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(SettingsError, match="'no_such_module' cannot be imported"):
        handlers.load_modules(["no_such_module"])


def test_the_modules_that_were_loaded_are_known() -> None:
    handlers.load_modules(["json", "dtq_reference.states"])
    assert handlers.modules == ["json", "dtq_reference.states"]


# RETRY-07
@pytest.mark.parametrize(("error", "is_retryable"), [
    (RetryableError(), True), (TimeoutError(), True), (RedisConnectionError(), True),
    (RedisTimeoutError(), True), (PermanentError(), False), (ValueError(), False),
    (ConnectionError(), False), (KeyError(), False)])
def test_the_errors_after_which_another_attempt_may_succeed_are_those_of_the_contract(
        error: Exception, is_retryable: bool) -> None:
    assert isinstance(error, handlers.RETRYABLE) == is_retryable


# Operations that are done once ------------------------------------------------------------------

@pytest.fixture
def once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("DTQ_KEY_PREFIX", engine.keys.prefix)
    return engine


def do_once(engine: Engine, key: str, fn: Callable[[], Any], ttl_s: float = 60) -> Any:
    return idempotent_operation(engine.redis, key, ttl_s, fn)


def awaited_once(engine: Engine, key: str, fn: Callable[[], Any], ttl_s: float = 60) -> Any:
    async def awaited() -> Any:
        transport = AsyncTransport(engine.settings.redis_url)
        try:
            return await idempotent_operation(transport.redis, key, ttl_s, fn)
        finally:
            await transport.close()
    return asyncio.run(awaited())


@pytest.fixture(params=[do_once, awaited_once], ids=["sync", "async"])
def operation(request: pytest.FixtureRequest) -> Any:
    return request.param


# HAND-04
def test_an_operation_whose_result_is_recorded_is_not_done_again(
        once: Engine, operation: Any) -> None:
    done: list[int] = []

    def fn() -> tuple[str, None]:
        done.append(1)
        return ("first", None)

    results = [operation(once, "k", fn) for _ in range(3)]
    assert (results, done) == ([["first", None]] * 3, [1])
    assert operation(once, "other", lambda: "second") == "second"
    assert 0 < once.redis.ttl(once.keys.once_prefix + "k") <= 60


def test_a_result_of_nothing_is_a_result(once: Engine, operation: Any) -> None:
    done: list[int] = []
    assert [operation(once, "k", lambda: done.append(1)) for _ in range(2)] == [None, None]
    assert done == [1]


def test_an_operation_that_failed_is_done_again(once: Engine, operation: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        operation(once, "k", lambda: 1 / 0)
    with pytest.raises(DtqError, match="the result is not JSON"):
        operation(once, "k", object)
    assert operation(once, "k", lambda: 7) == 7


def test_when_its_time_is_up_an_operation_is_done_again(once: Engine, operation: Any) -> None:
    assert operation(once, "k", lambda: 1) == 1
    once.redis.persist(once.keys.once_prefix + "k")
    assert operation(once, "k", lambda: 2) == 1
    once.redis.pexpireat(once.keys.once_prefix + "k", 1)
    assert operation(once, "k", lambda: 3) == 3


def test_of_two_at_a_time_both_get_what_was_recorded_first(once: Engine, operation: Any) -> None:
    assert operation(once, "k", lambda: do_once(once, "k", lambda: "inner") and "outer") == "inner"


def test_an_awaited_operation_may_itself_be_awaited(once: Engine) -> None:
    async def fn() -> int:
        return 5
    assert [awaited_once(once, "k", fn) for _ in range(2)] == [5, 5]


# The hook ---------------------------------------------------------------------------------------

TAKEN = Taken(level=1, entry_id="1-0", attempt=1, task_id="a" * 32, task_type="t", payload=b"{}",
              max_attempts=5, timeout_ms=1, queue="default", alone=False, created_at=0)
GOOD = Outcome(TAKEN, 1, b'{"a":1}')
BAD = Outcome(TAKEN, 1, error_class="E", error_message="m")


def tell(outcome: Outcome, state: str) -> None:
    """Settle an attempt that ended like this, and hear the hooks out."""
    async def settled() -> None:
        handlers.completed(outcome, state)
        await handlers.hooks_done(30)
    asyncio.run(settled())


# HAND-06
def test_each_hook_hears_of_a_finished_task_and_of_no_other() -> None:
    heard: list[tuple[Outcome, str]] = []

    @handlers.on_completion
    def broken(outcome: Outcome, status: str) -> None:
        raise RuntimeError

    @handlers.on_completion
    async def awaited(outcome: Outcome, status: str) -> None:
        heard.append((outcome, status))

    @handlers.on_completion
    def called(outcome: Outcome, status: str) -> None:
        heard.append((outcome, status))

    for state in ("retrying", "superseded", "queued"):
        tell(BAD, state)
    assert heard == []
    tell(GOOD, "succeeded")
    tell(BAD, "dead_lettered")
    assert heard == 2 * [(GOOD, "succeeded")] + 2 * [(BAD, "dead_lettered")]


def test_what_a_hook_raises_is_logged_with_the_task(caplog: pytest.LogCaptureFixture) -> None:
    @handlers.on_completion
    async def broken(outcome: Outcome, status: str) -> None:
        raise RuntimeError("the hook broke")

    tell(GOOD, "succeeded")
    assert "the completion hook failed for task " + "a" * 32 in caplog.text
    assert "the hook broke" in caplog.text

"""Handlers in child processes: killed at the time limit, replaced when they die, never left over.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from dtq_conformance.waiting import wait_for
from dtq_reference import handlers
from dtq_reference.calls import Taken
from dtq_reference.executor import call_handler
from dtq_reference.process_pool import ProcessPool, WorkerLost
from dtq_reference.settings import Settings

LIMIT_S = 30.0

WORKER = """
import sys, threading
from dtq_reference import handlers, process_pool, settings
from dtq_reference.executor import call_handler
from tests.reference.test_process_pool import taken
handlers.load_modules(["dtq_reference.demo_tasks"])
pool = process_pool.ProcessPool(settings.Settings())
for steps in sys.argv[1:]:
    pool.run(60, call_handler, taken("sync_probe_task", steps.encode()), "w", 100)
threading.Event().wait()
"""


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "modules", ["dtq_reference.demo_tasks",
                                              "tests.reference.odd_handlers"])


def taken(task_type: str, payload: bytes) -> Taken:
    return Taken(level=1, entry_id="1-0", attempt=3, task_id="a" * 32, task_type=task_type,
                 payload=payload, max_attempts=5, timeout_ms=60_000, queue="default", alone=False,
                 created_at=0, idempotency_key="k")


def with_pool(use: Callable[[ProcessPool], Awaitable[None]]) -> None:
    """Use a pool of this process."""
    asyncio.run(use(ProcessPool(Settings())))  # type: ignore[arg-type]


async def run(pool: ProcessPool, task_type: str, payload: dict[str, Any], *,
              limit_s: float = LIMIT_S) -> Any:
    """The result of an attempt, or its failed outcome. Small results."""
    outcome = await asyncio.to_thread(
        pool.run, limit_s, call_handler, taken(task_type, json.dumps(payload).encode()), "w", 100)
    return outcome if outcome.error_class else json.loads(outcome.result)


async def probe(pool: ProcessPool, *steps: dict[str, Any], limit_s: float = LIMIT_S) -> Any:
    return await run(pool, "sync_probe_task", {"steps": list(steps)}, limit_s=limit_s)


def test_a_child_executes_one_attempt_after_the_other_and_is_told_of_each() -> None:
    async def use(pool: ProcessPool) -> None:
        first, second = await probe(pool), await probe(pool)
        assert first == second == {"attempt": 3, "worker_id": "w", "pid": first["pid"]}
        assert first["pid"] != os.getpid()
        told = await run(pool, "describe_context_in_thread", {"a": 1})
        assert told == {"task_id": "a" * 32, "idempotency_key": "k", "payload": {"a": 1}}
    with_pool(use)


@pytest.mark.slow
def test_attempts_at_the_same_time_have_a_child_each(tmp_path: Path) -> None:
    async def use(pool: ProcessPool) -> None:
        until = tmp_path / "until"
        waiting = asyncio.create_task(run(pool, "wait_in_thread", {"until": str(until)}))
        assert (await probe(pool))["attempt"] == 3
        until.touch()
        assert await waiting == {"attempt": 3}
    with_pool(use)


@pytest.mark.slow
def test_a_failure_is_what_it_would_be_in_the_worker() -> None:
    async def use(pool: ProcessPool) -> None:
        for kind, expected in (("retryable", ("RetryableError", True)),
                               ("permanent", ("PermanentError", False)),
                               ("unknown", ("RuntimeError", False))):
            failure = await probe(pool, {"fail": kind})
            assert (failure.error_class, failure.retryable) == expected
        assert (await run(pool, "exits_in_thread", {})).error_class == "SystemExit"
        assert (await run(pool, "no_such_task", {})).error_class == "UnknownTaskType"
        assert (await probe(pool, {"return_unserialisable": True})).error_class == "ResultNotJson"
        assert (await probe(pool, {"return_bytes": 500}))["truncated"] is True
    with_pool(use)


# WORK-11
@pytest.mark.slow
@pytest.mark.parametrize("step", [{"sleep": 60_000}, {"busy": 60_000}], ids=str)
def test_a_handler_past_its_limit_is_killed_and_replaced(step: dict[str, Any]) -> None:
    async def use(pool: ProcessPool) -> None:
        first = (await probe(pool))["pid"]
        with pytest.raises(TimeoutError, match=r"killed after 0\.1 s"):
            await probe(pool, step, limit_s=0.1)
        assert not psutil.pid_exists(first)
        assert (await probe(pool))["pid"] != first
    with_pool(use)


# WORK-12
@pytest.mark.slow
@pytest.mark.parametrize(("step", "code"), [({"exit": 3}, 3), ({"kill": True}, -9)], ids=str)
def test_a_child_that_dies_fails_its_own_attempt_and_no_other(
        step: dict[str, Any], code: int, tmp_path: Path) -> None:
    async def use(pool: ProcessPool) -> None:
        until = tmp_path / "until"
        waiting = asyncio.create_task(run(pool, "wait_in_thread", {"until": str(until)}))
        with pytest.raises(WorkerLost, match=f"ended with code {code}"):
            await probe(pool, step)
        until.touch()
        assert await waiting == {"attempt": 3}
        assert isinstance(WorkerLost(), handlers.RETRYABLE)
    with_pool(use)


@pytest.mark.slow
def test_an_idle_child_that_died_costs_no_attempt() -> None:
    async def use(pool: ProcessPool) -> None:
        first = (await probe(pool))["pid"]
        os.kill(first, signal.SIGKILL)
        while not pool._idle[0].connection.poll():  # its end is to be heard
            await asyncio.sleep(0)
        assert (await probe(pool))["pid"] != first
    with_pool(use)


def test_signals_that_ask_the_worker_to_stop_are_not_for_its_children(tmp_path: Path) -> None:
    async def use(pool: ProcessPool) -> None:
        first = (await probe(pool))["pid"]
        waiting = asyncio.create_task(probe(pool, {"sleep": 50}))
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(first, number)
        assert (await waiting)["pid"] == first
    with_pool(use)


def test_without_room_for_a_process_the_attempt_may_be_tried_again(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    async def use(pool: ProcessPool) -> None:
        with pytest.raises(WorkerLost, match="no process could be started"):
            await probe(pool)
    with_pool(use)


@pytest.mark.slow
def test_a_child_that_cannot_load_the_modules_is_a_lost_one(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "modules", ["no_such_module"])

    async def use(pool: ProcessPool) -> None:
        with pytest.raises(WorkerLost):
            await probe(pool)
    with_pool(use)


@pytest.mark.slow
@pytest.mark.parametrize("step", [None, {"sleep": 60_000}, {"busy": 60_000}],
                         ids=["idle", "asleep", "busy"])
def test_when_the_worker_is_killed_its_children_end(
        step: dict[str, Any] | None, tmp_path: Path, need: Callable[[object, str], None]) -> None:
    need(step is None or sys.platform == "linux", "Linux, which ends a child within its call")
    steps = [json.dumps({"steps": [each] if each else []}) for each in (None, step)]
    witness = tmp_path / "witness"
    worker = subprocess.Popen([sys.executable, "-c", WORKER, *steps],
                              env={**os.environ, "DTQ_WITNESS": str(witness)})
    wait_for(lambda: witness.exists() and witness.read_text().count('"start"') == 2,
             reason="the second attempt", limit_s=LIMIT_S)
    children = psutil.Process(worker.pid).children()
    assert len(children) == 1
    worker.kill()
    worker.wait()
    wait_for(lambda: not children[0].is_running(), reason="the child to end", limit_s=LIMIT_S)

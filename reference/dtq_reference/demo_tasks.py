"""Demonstration tasks, and `probe_task`, by which an implementation is judged from outside.

`probe_task` does the steps of its payload in order and writes what happened into the witness
file (DTQ_WITNESS), outside the queue: one line, one write, so that a killed process leaves
either a whole line or none.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from dtq_reference import settings
from dtq_reference.errors import PermanentError, RetryableError
from dtq_reference.handlers import TaskContext, idempotent_operation, task
from dtq_reference.transport import AsyncTransport

ONCE_TTL_S = 3600
"""How long the `once` step of `probe_task` is remembered."""

_counts = itertools.count(1)

_FAILURES = {"retryable": RetryableError, "permanent": PermanentError, "unknown": RuntimeError}


@task("echo_task")
async def echo_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Return the payload."""
    return payload


@task("sleep_task")
async def sleep_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Sleep `seconds`, at most 30."""
    seconds = min(30.0, max(0.0, float(payload.get("seconds", 1))))
    await asyncio.sleep(seconds)
    return {"slept_s": seconds}


@task("slow_task")
def slow_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Sleep five seconds in a thread."""
    time.sleep(5)
    return {"slept_s": 5}


@task("fibonacci_task")
def fibonacci_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Compute a Fibonacci number, n at most 30, the slow way: work for the processor."""

    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    return {"fibonacci": fibonacci(min(30, max(0, int(payload.get("n", 20)))))}


@task("flaky_task")
async def flaky_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Fail the first `failures` attempts (default 2), then succeed."""
    if ctx.attempt <= int(payload.get("failures", 2)):
        raise RetryableError(f"attempt {ctx.attempt} was meant to fail")
    return {"attempt": ctx.attempt}


@task("always_fail_task")
async def always_fail_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Fail every attempt, retryably."""
    raise RetryableError("this task always fails")


@task("counter_task")
async def counter_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Count the tasks of this type that this process has executed."""
    return {"count": next(_counts)}


@task("probe_task")
async def probe_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Do the steps of the payload in order: {"steps": [{"sleep": 50}, ...], "label": "..."}.

    Steps: sleep ms, busy ms (holds the interpreter's lock), block ms (blocks the event loop),
    fail retryable|permanent|unknown, exit code, kill, once key, return value, return_bytes n,
    return_unserialisable. Any step may carry until_attempt: it then happens on attempts up to
    that one only. A return step ends the handler; without one the result is attempt, worker_id
    and pid, and after a once step also once: the task_id and attempt that did it for its key.
    """
    _witness(ctx, payload, "start")
    try:
        result = await _result(payload.get("steps", []), ctx)
    except BaseException as error:
        failed = isinstance(error, Exception)
        _witness(ctx, payload, "end", outcome="failed" if failed else "cancelled")
        raise
    _witness(ctx, payload, "end", outcome="ok")
    return result


@task("sync_probe_task")
def sync_probe_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """`probe_task` as a sync handler: it runs in a thread, or in a process of the pool."""
    return asyncio.run(probe_task(payload, ctx))


async def _result(steps: list[dict[str, Any]], ctx: TaskContext) -> Any:
    """Do the steps; the result is that of a return step, or says who did them."""
    result = {"attempt": ctx.attempt, "worker_id": ctx.worker_id, "pid": os.getpid()}
    for step in steps:
        if ctx.attempt > step.get("until_attempt", ctx.attempt):
            continue
        match step:
            case {"return": value}:
                return value
            case {"return_bytes": size}:
                return "x" * size
            case {"return_unserialisable": True}:
                return object()
            case {"once": key}:
                result["once"] = await _once(key, ctx)
            case {"sleep": ms}:
                await asyncio.sleep(ms / 1000)
            case {"busy": ms}:
                ctypes.PyDLL(None).usleep(int(ms * 1000))
            case {"block": ms}:
                time.sleep(ms / 1000)
            case {"fail": kind}:
                raise _FAILURES[kind](f"a failure of the kind {kind} was asked for")
            case {"exit": code}:
                os._exit(code)
            case {"kill": True}:
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                raise PermanentError(f"probe_task has no step {sorted(step)}")
    return result


async def _once(key: str, ctx: TaskContext) -> Any:
    """Who did the operation of this key."""
    known = settings.load()
    async with AsyncTransport(known.redis_url, known.key_prefix).redis as client:
        return await idempotent_operation(
            client, key, ONCE_TTL_S, lambda: {"task_id": ctx.task_id, "attempt": ctx.attempt})


def _witness(ctx: TaskContext, payload: dict[str, Any], event: str, **ending: str) -> None:
    """Append a line: unbuffered, so that it is one write."""
    if path := os.environ.get("DTQ_WITNESS"):
        line = {"at_ns": time.monotonic_ns(), "event": event, "task_id": ctx.task_id,
                "attempt": ctx.attempt, "worker_id": ctx.worker_id, "pid": os.getpid(),
                "label": str(payload.get("label", "")), **ending}
        with Path(path).open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")

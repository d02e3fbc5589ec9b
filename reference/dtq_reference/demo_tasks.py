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
    outcome = "cancelled"
    try:
        result: Any = {"attempt": ctx.attempt, "worker_id": ctx.worker_id, "pid": os.getpid()}
        for step in payload.get("steps", []):
            if ctx.attempt > step.get("until_attempt", ctx.attempt):
                continue
            if "return" in step or "return_bytes" in step or "return_unserialisable" in step:
                result = _value(step)
                break
            if "once" in step:
                result["once"] = await _once(step["once"], ctx)
            else:
                await _do(step)
        outcome = "ok"
        return result
    except Exception:
        outcome = "failed"
        raise
    finally:
        _witness(ctx, payload, "end", outcome)


@task("sync_probe_task")
def sync_probe_task(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """`probe_task` as a sync handler: it runs in a thread, or in a process of the pool."""
    return asyncio.run(probe_task(payload, ctx))


async def _once(key: str, ctx: TaskContext) -> Any:
    """Who did the operation of this key."""
    known = settings.load()
    transport = AsyncTransport(known.redis_url, known.key_prefix)
    try:
        return await idempotent_operation(
            transport.redis, key, ONCE_TTL_S,
            lambda: {"task_id": ctx.task_id, "attempt": ctx.attempt})
    finally:
        await transport.close()


def _value(step: dict[str, Any]) -> Any:
    """What a return step returns; it ends the handler."""
    if "return_bytes" in step:
        return "x" * step["return_bytes"]
    return object() if "return_unserialisable" in step else step["return"]


async def _do(step: dict[str, Any]) -> None:
    """Do one step that is not a return."""
    match step:
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


def _witness(ctx: TaskContext, payload: dict[str, Any], event: str,
             outcome: str | None = None) -> None:
    path = os.environ.get("DTQ_WITNESS")
    if not path:
        return
    line = {"at_ns": time.monotonic_ns(), "event": event, "task_id": ctx.task_id,
            "attempt": ctx.attempt, "worker_id": ctx.worker_id, "pid": os.getpid(),
            "label": str(payload.get("label", ""))}
    if outcome is not None:
        line["outcome"] = outcome
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)

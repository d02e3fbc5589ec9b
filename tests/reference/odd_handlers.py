"""Handlers for the tests of the worker, which runs in a process of its own.

Nothing here takes a given time: a handler that waits does so until a file appears.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from pathlib import Path
from typing import Any

from dtq_conformance.waiting import wait_for
from dtq_reference.calls import Outcome
from dtq_reference.handlers import TaskContext, on_completion, task

LIMIT_S = 60.0


@task("wait_in_thread")
def wait_in_thread(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Wait for the file `until`, in a thread."""
    wait_for(Path(payload["until"]).exists, reason="a file", limit_s=LIMIT_S)
    return {"attempt": ctx.attempt}


@task("wait_on_loop")
async def wait_on_loop(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Wait for the file `until`, on the event loop."""
    while not Path(payload["until"]).exists():
        await asyncio.sleep(0.01)
    return {"attempt": ctx.attempt}


@task("describe_context")
def describe_context(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Tell what a handler is told."""
    return {"task_id": ctx.task_id, "attempt": ctx.attempt, "worker_id": ctx.worker_id,
            "queue": ctx.queue, "payload": payload}


@task("wait_and_block")
async def wait_and_block(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Hold up the event loop until the file `until` appears."""
    wait_for(Path(payload["until"]).exists, reason="a file", limit_s=LIMIT_S)
    return {"attempt": ctx.attempt}


@task("never_listens")
async def never_listens(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Wait for the file `until` and swallow every cancellation; notes its starts in `log`."""
    with Path(payload["log"]).open("a") as log:
        log.write(f"{ctx.attempt}\n")
    while not Path(payload["until"]).exists():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            continue


@task("cancels_itself")
async def cancels_itself(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Raise what only a cancelled task should."""
    raise asyncio.CancelledError


@task("exits")
async def exits(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Try to end the process from the loop."""
    sys.exit(3)


@task("exits_in_thread")
def exits_in_thread(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Try to end the process from a thread."""
    sys.exit(3)


@task("stops_iterating")
def stops_iterating(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Raise what a future cannot pass on."""
    raise StopIteration


@task("returns_nan")
async def returns_nan(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Return what JSON has no word for."""
    return math.nan


@task("describe_context_in_thread")
def describe_context_in_thread(payload: dict[str, Any], ctx: TaskContext) -> Any:
    """Tell what a sync handler is told."""
    return {"task_id": ctx.task_id, "idempotency_key": ctx.idempotency_key, "payload": payload}


@on_completion
def note_completion(outcome: Outcome, status: str) -> None:
    """Append the finished task's id and status to the file in DTQ_HEARD, if it is set."""
    if path := os.environ.get("DTQ_HEARD"):
        with Path(path).open("a") as file:
            file.write(f"{outcome.taken.task_id} {status}\n")

"""Handlers for the tests of the worker, which runs in a process of its own.

Nothing here takes a given time: a handler that waits does so until a file appears.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dtq_conformance.waiting import wait_for
from dtq_reference.handlers import TaskContext, task

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

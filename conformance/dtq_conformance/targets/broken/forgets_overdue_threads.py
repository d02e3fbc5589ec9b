"""Runs handlers in threads, and forgets a thread that has outlived its attempt."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dtq_reference import handlers
from dtq_reference.demo_tasks import probe_task
from dtq_reference.executor import Executor
from dtq_reference.handlers import TaskContext

from dtq_conformance.targets.defect import Defect

THREADS = 100


class Forgetful(set[Any]):
    """Holds nothing of what it is given."""

    def add(self, _: Any) -> None: ...


def _put_in() -> None:
    def probe_in_a_thread(payload: dict[str, Any], ctx: TaskContext) -> Any:
        return asyncio.run(probe_task(payload, ctx))

    handlers.task("probe_task")(probe_in_a_thread)
    begin = Executor.__init__

    def with_many_threads(self: Executor, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self._threads = ThreadPoolExecutor(THREADS)
        self._hands.overdue = Forgetful()

    Executor.__init__ = with_many_threads  # type: ignore[method-assign]


DEFECT = Defect(
    "forgets_overdue_threads",
    "Runs handlers in threads, and forgets a thread that has outlived its attempt.",
    caught_by=("capacity_respected",),
    also=("cancelled_stays_cancelled", "drained_on_stop", "one_holder_at_a_time"),
    put_in=_put_in)

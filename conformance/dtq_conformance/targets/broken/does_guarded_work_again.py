"""Does a guarded operation each time, whatever was recorded for its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtq_reference import demo_tasks

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    async def done_again(_: Any, __: str, ___: float, fn: Callable[[], Any]) -> Any:
        return fn()

    vars(demo_tasks)["idempotent_operation"] = done_again


DEFECT = Defect(
    "does_guarded_work_again",
    "Does a guarded operation each time, whatever was recorded for its key.",
    caught_by=("handlers_as_promised",), also=(),
    put_in=_put_in)

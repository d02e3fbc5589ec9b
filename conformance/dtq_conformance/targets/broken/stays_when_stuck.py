"""Goes on when every slot is held by a handler that has outrun its time limit."""

from __future__ import annotations

from typing import Any

from dtq_reference.executor import Executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def go_on(self: Executor, overdue: set[Any]) -> None: ...

    Executor._end_stuck = go_on  # type: ignore[method-assign]


DEFECT = Defect(
    "stays_when_stuck",
    "Goes on when every slot is held by a handler that has outrun its time limit.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)

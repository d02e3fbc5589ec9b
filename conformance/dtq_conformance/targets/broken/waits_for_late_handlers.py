"""Settles what a synchronous handler returns after its time limit."""

from __future__ import annotations

from dtq_reference.executor import Executor
from dtq_reference.hands import Hold

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    reached = Executor._limit_reached

    def if_it_is_awaited(self: Executor, hold: Hold) -> None:
        if hold.is_awaited:
            reached(self, hold)

    Executor._limit_reached = if_it_is_awaited  # type: ignore[method-assign]


DEFECT = Defect(
    "waits_for_late_handlers",
    "Settles what a synchronous handler returns after its time limit.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)

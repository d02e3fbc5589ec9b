"""Fails an attempt at its time limit with an error class of its own."""

from __future__ import annotations

from dtq_reference import errors, executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    class LimitReached(errors.RetryableError):
        """What it calls a TimeoutError."""

    executor.TimeoutError = LimitReached  # type: ignore[attr-defined]


DEFECT = Defect(
    "calls_a_time_limit_something_else",
    "Fails an attempt at its time limit with an error class of its own.",
    caught_by=("workers_as_promised",), also=("one_terminal_state",),
    put_in=_put_in)

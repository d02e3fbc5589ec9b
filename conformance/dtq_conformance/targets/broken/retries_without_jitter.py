"""Waits for exactly the same time before every retry of one number."""

from __future__ import annotations

from dtq_reference import executor
from dtq_reference.settings import Settings

from dtq_conformance.targets.defect import Defect

_spread_ms = executor.retry_delay_ms


def _middle_ms(attempt: int, settings: Settings, draw: float | None = None) -> int:
    return _spread_ms(attempt, settings, draw=0.0)


def _put_in() -> None:
    executor.retry_delay_ms = _middle_ms


DEFECT = Defect(
    "retries_without_jitter",
    "Waits for exactly the same time before every retry of one number.",
    caught_by=("retry_delays_in_envelope",), also=(),
    put_in=_put_in)

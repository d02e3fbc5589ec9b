"""Waits much longer before the first retry than its delay."""

from __future__ import annotations

from dtq_reference import executor
from dtq_reference.settings import Settings

from dtq_conformance.targets.defect import Defect

MORE_MS = 1_200

_delay_ms = executor.retry_delay_ms


def _longer_ms(attempt: int, settings: Settings, draw: float | None = None) -> int:
    return _delay_ms(attempt, settings, draw) + MORE_MS * (attempt == 1)


def _put_in() -> None:
    executor.retry_delay_ms = _longer_ms


DEFECT = Defect(
    "retries_too_late",
    "Waits much longer before the first retry than its delay.",
    caught_by=("retry_delays_in_envelope",), also=(),
    put_in=_put_in)

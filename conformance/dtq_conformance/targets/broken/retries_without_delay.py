"""Retries at once: every delay is nothing."""

from __future__ import annotations

from dtq_reference import executor
from dtq_reference.settings import Settings

from dtq_conformance.targets.defect import Defect


def _no_delay_ms(attempt: int, settings: Settings, draw: float | None = None) -> int:
    return 0


def _put_in() -> None:
    executor.retry_delay_ms = _no_delay_ms


DEFECT = Defect(
    "retries_without_delay",
    "Retries at once: every delay is nothing.",
    caught_by=("retry_delays_in_envelope",), also=(),
    put_in=_put_in)

"""Waits as long before the fifth retry as before the first."""

from __future__ import annotations

from dtq_reference import executor
from dtq_reference.settings import Settings

from dtq_conformance.targets.defect import Defect

_growing_ms = executor.retry_delay_ms


def _first_delay_ms(attempt: int, settings: Settings, draw: float | None = None) -> int:
    return _growing_ms(1, settings, draw)


def _put_in() -> None:
    executor.retry_delay_ms = _first_delay_ms


DEFECT = Defect(
    "retries_without_growth",
    "Waits as long before the fifth retry as before the first.",
    caught_by=("retry_delays_in_envelope",), also=(),
    put_in=_put_in)

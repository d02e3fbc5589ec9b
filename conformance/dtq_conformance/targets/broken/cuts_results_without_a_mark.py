"""Cuts a result that is too long, and does not say so."""

from __future__ import annotations

from typing import Any

from dtq_reference import executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    whole = executor.bounded_result

    def cut(value: Any, limit_bytes: int) -> bytes:
        return whole(value[:limit_bytes // 2] if isinstance(value, str) else value, limit_bytes)

    executor.bounded_result = cut


DEFECT = Defect(
    "cuts_results_without_a_mark",
    "Cuts a result that is too long, and does not say so.",
    caught_by=("handlers_as_promised",), also=(),
    put_in=_put_in)

"""Keeps error messages as long as they come."""

from __future__ import annotations

from dtq_reference import executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    executor.MAX_ERROR_MESSAGE = 1_000_000


DEFECT = Defect(
    "keeps_long_messages",
    "Keeps error messages as long as they come.",
    caught_by=("fields_as_promised",), also=(),
    put_in=_put_in)

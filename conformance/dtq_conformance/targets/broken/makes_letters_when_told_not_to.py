"""Makes dead letters though dead-lettering is off."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  if not call.dlq_enabled then", "  if false then")


DEFECT = Defect(
    "makes_letters_when_told_not_to",
    "Makes dead letters though dead-lettering is off.",
    caught_by=("fields_as_promised",), also=(),
    put_in=_put_in)

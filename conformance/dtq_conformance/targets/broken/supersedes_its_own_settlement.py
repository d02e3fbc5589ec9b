"""Answers a settlement that is sent again as it answers one of a holder that lost its task."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "string.sub(note, 1, #mine) == mine", "false")


DEFECT = Defect(
    "supersedes_its_own_settlement",
    "Answers a settlement that is sent again as it answers one of a holder that lost its task.",
    caught_by=("duplicates_justified",), also=(),
    put_in=_put_in)

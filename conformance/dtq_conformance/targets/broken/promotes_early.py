"""Promotes what will be due soon, so that it is on time."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "'-inf', NOW,", "'-inf', NOW + 60,")


DEFECT = Defect(
    "promotes_early",
    "Promotes what will be due soon, so that it is on time.",
    caught_by=("retry_delays_in_envelope",), also=(),
    put_in=_put_in)

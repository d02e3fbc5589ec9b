"""Promotes 100 tasks at most each time it looks, however many are due."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "#due == call.limit and 1 or 0", "0")


DEFECT = Defect(
    "promotes_a_hundred_at_a_look",
    "Promotes 100 tasks at most each time it looks, however many are due.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)

"""Lets one task more into a queue than its limit allows."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "if depth >= call.max_depth then", "if depth > call.max_depth then")


DEFECT = Defect(
    "lets_one_too_many_in",
    "Lets one task more into a queue than its limit allows.",
    caught_by=("depth_is_exact",), also=("fields_as_promised", "nothing_left_behind"),
    put_in=_put_in)

"""Puts every submission into the stream of one level."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "+ 10 - task.priority], task)", "+ 5], task)")


DEFECT = Defect(
    "ignores_priorities",
    "Puts every submission into the stream of one level.",
    caught_by=("strict_priority",),
    also=("keys_as_promised", "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

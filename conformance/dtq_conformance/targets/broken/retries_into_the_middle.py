"""Promotes a retry into level 5, whatever its priority is."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "(10 - task.priority)]", "(10 - (is_retry and 5 or task.priority))]")


DEFECT = Defect(
    "retries_into_the_middle",
    "Promotes a retry into level 5, whatever its priority is.",
    caught_by=("keys_as_promised",),
    also=("one_way_leads_to_each_unfinished_task", "strict_priority", "nothing_left_behind"),
    put_in=_put_in)

"""Promotes a task and leaves its member in the schedule."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "  else\n    unschedule(KEYS[2], KEYS[3], task)\n", "  else\n")
    rewrite("promote", "    unschedule(KEYS[2], KEYS[3], task)\n  elseif not place_of",
            "    unknown = 0\n  elseif not place_of")


DEFECT = Defect(
    "leaves_the_schedule_member",
    "Promotes a task and leaves its member in the schedule.",
    caught_by=("nothing_left_behind",),
    also=("attempts_bounded", "metrics_count_right", "nothing_lost",
          "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

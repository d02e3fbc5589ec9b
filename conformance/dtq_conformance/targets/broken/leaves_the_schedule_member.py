"""Promotes a task and leaves its member in the schedule."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "    redis.call('ZREM', KEYS[2], task_id)\n    promoted = promoted + 1\n",
            "    promoted = promoted + 1\n")
    rewrite("promote", "    redis.call('ZREM', KEYS[2], task_id)\n  elseif not place",
            "    place = place\n  elseif not place")


DEFECT = Defect(
    "leaves_the_schedule_member",
    "Promotes a task and leaves its member in the schedule.",
    caught_by=("nothing_left_behind",), also=("attempts_bounded", "nothing_lost"),
    put_in=_put_in)

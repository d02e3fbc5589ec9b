"""Enqueues a due task in one step, and removes its member of the schedule in a later one."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite

LATER_MS = 500


def _put_in() -> None:
    rewrite("promote", "    unschedule(KEYS[2], KEYS[3], task)\n    if task.cancel_requested then",
            f"    redis.call('ZADD', KEYS[2], NOW + {LATER_MS}, task_id)\n"
            "    if task.cancel_requested then")


DEFECT = Defect(
    "promotes_in_two_steps",
    "Enqueues a due task in one step, and removes its member of the schedule in a later one.",
    caught_by=("one_way_leads_to_each_unfinished_task",),
    also=("metrics_count_right", "nothing_left_behind", "workers_as_promised"),
    put_in=_put_in)

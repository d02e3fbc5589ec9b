"""Counts delayed tasks, and no retries, when it keeps the depth of the schedule."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  schedule(KEYS[11], KEYS[12], task, NOW + outcome.delay_ms)\n",
            "  redis.call('ZADD', KEYS[11], NOW + outcome.delay_ms, task.task_id)\n")
    rewrite("promote", "    unschedule(KEYS[2], KEYS[3], task)\n    if task.cancel_requested then",
            "    if task.status == 'retrying' then redis.call('ZREM', KEYS[2], task_id)\n"
            "    else unschedule(KEYS[2], KEYS[3], task) end\n    if task.cancel_requested then")


DEFECT = Defect(
    "counts_only_delayed_tasks",
    "Counts delayed tasks, and no retries, when it keeps the depth of the schedule.",
    caught_by=("one_way_leads_to_each_unfinished_task",), also=("depth_is_exact",),
    put_in=_put_in)

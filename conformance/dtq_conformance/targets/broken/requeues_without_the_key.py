"""Requeues a task and leaves the record of its key as it was."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("requeue", "    redis.call('SET', record_key(task), idempotency_record(task.task_id, "
            "'processing'))\n", "")


DEFECT = Defect(
    "requeues_without_the_key",
    "Requeues a task and leaves the record of its key as it was.",
    caught_by=("keys_as_promised",),
    also=("one_way_leads_to_each_unfinished_task", "one_task_per_key"),
    put_in=_put_in)

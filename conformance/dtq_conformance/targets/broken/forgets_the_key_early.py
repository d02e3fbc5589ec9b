"""A key that is remembered for a second, whether its task is finished or not."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "idempotency_record(task.task_id, 'processing'))",
            "idempotency_record(task.task_id, 'processing'),\n"
            "               'EX', 1)")


DEFECT = Defect(
    "forgets_the_key_early",
    "Remembers a key for one second, even while its task is unfinished.",
    caught_by=("one_task_per_key",),
    also=("keys_as_promised", "nothing_left_behind"),
    put_in=_put_in)

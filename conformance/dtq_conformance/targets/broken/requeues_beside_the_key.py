"""A requeue that does not look at whose key it is now."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("requeue",
            "    if not STATE_OF_KEY[status] then return {'in_progress', owner} end\n", "")


DEFECT = Defect(
    "requeues_beside_the_key",
    "Requeues a dead letter whose key is another unfinished task's by now.",
    caught_by=("one_task_per_key",), also=(),
    put_in=_put_in)

"""Puts the task's id into a label of what it counts as started."""

from __future__ import annotations

from dtq_reference.calls import Taken
from dtq_reference.metrics import Counting, Metrics

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def started(self: Metrics, taken: Taken, *, waited_s: float) -> None:
        names = (taken.queue, f"{taken.task_type}:{taken.task_id}")
        self._add("dtq_tasks_started_total", names)
        self._add("dtq_task_wait_seconds", names, waited_s)

    Counting.started = started  # type: ignore[method-assign]


DEFECT = Defect(
    "labels_with_task_ids",
    "Puts the task's id into a label of what it counts as started.",
    caught_by=("metrics_count_right",), also=(),
    put_in=_put_in)

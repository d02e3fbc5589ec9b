"""Puts the task's id into a label of what it counts as started."""

from __future__ import annotations

from dtq_reference.calls import Taken
from dtq_reference.metrics import Metrics

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def started(self: Metrics, taken: Taken, *, waited_s: float) -> None:
        self._add({"queue": taken.queue, "task_type": f"{taken.task_type}:{taken.task_id}"},
                  tasks_started_total=1, task_wait_seconds=waited_s)

    Metrics.started = started  # type: ignore[method-assign]


DEFECT = Defect(
    "labels_with_task_ids",
    "Puts the task's id into a label of what it counts as started.",
    caught_by=("metrics_count_right",), also=(),
    put_in=_put_in)

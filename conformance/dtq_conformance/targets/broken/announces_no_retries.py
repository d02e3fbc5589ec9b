"""Promotes retries without an event."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "publish(is_retry and 'TASK_RETRIED' or 'TASK_QUEUED', task)",
            "if not is_retry then publish('TASK_QUEUED', task) end")


DEFECT = Defect(
    "announces_no_retries",
    "Promotes retries without an event.",
    caught_by=("one_event_per_transition",), also=(),
    put_in=_put_in)

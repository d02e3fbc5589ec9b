"""A request to cancel that dies with the holder."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "  elseif task.cancel_requested then",
            "  elseif task.cancel_requested and task.status == 'queued' then")


DEFECT = Defect(
    "redelivers_after_a_request",
    "Redelivers a task whose cancellation was asked for when its holder is lost.",
    caught_by=("cancelled_stays_cancelled",), also=(),
    put_in=_put_in)

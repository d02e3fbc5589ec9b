"""A request to cancel that a failed attempt forgets."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  if task.cancel_requested then return 'cancelled' end\n", "")
    rewrite("promote", "    if task.cancel_requested then\n",
            "    if task.status == 'cancelled' then\n")
    rewrite("take", "  elseif task.cancel_requested then",
            "  elseif task.cancel_requested and task.status == 'running' then")


DEFECT = Defect(
    "tries_again_after_a_request",
    "Tries a task again that failed after it was asked to be cancelled.",
    caught_by=("cancelled_stays_cancelled",), also=(),
    put_in=_put_in)

"""A purge that asks running tasks to stop."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("cancel", "  if call.only_waiting then return {'running', task.status} end\n", "")


DEFECT = Defect(
    "purges_what_runs",
    "Asks running tasks to be cancelled when their queue is purged.",
    caught_by=("cancelled_stays_cancelled",), also=(),
    put_in=_put_in)

"""Does not give a process again what its last take gave it and whose answer was lost."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "ipairs((given ~= '' or not call.number) and filled or {})", "ipairs({})")


DEFECT = Defect(
    "forgets_lost_takes",
    "Does not give a process again what its last take gave it and whose answer was lost.",
    caught_by=("attempts_accounted_for",),
    also=("one_way_leads_to_each_unfinished_task", "workers_as_promised"),
    put_in=_put_in)

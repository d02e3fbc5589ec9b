"""Removes the consumer of a process that is gone, also when something is pending under its name."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("sweep", "about['pending'] == 0 and ", "")


DEFECT = Defect(
    "removes_consumers_with_work",
    "Removes the consumer of a process that is gone, also when something is pending under its "
    "name.",
    caught_by=("nothing_lost",),
    also=("drained_on_stop", "keys_as_promised", "nothing_left_behind",
          "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

"""Takes one entry of each level at once, whatever there is room for."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "  while #tasks < call.room do\n    local read = ",
            "  for _ = 1, 1 do\n    local read = ")
    rewrite("take", "                            call.room - #tasks, ",
            "                            1, ")
    rewrite("take", "  if stop or #tasks >= call.room then break end\n",
            "  if stop then break end\n")


DEFECT = Defect(
    "takes_one_of_each_level",
    "Takes one entry of each level at once, whatever there is room for.",
    caught_by=("strict_priority",),
    also=("capacity_respected", "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

"""Takes a redelivery for a duplicate when the entry is behind the record."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "  local is_lost = task.status == 'running'\n",
            "  if tonumber(fields_of(entry.flat).attempt) < task.attempt then\n"
            "    acknowledge(KEYS[level], entry_id)\n"
            "    return nil\n"
            "  end\n"
            "  local is_lost = task.status == 'running'\n")


DEFECT = Defect(
    "absorbs_second_redelivery",
    "Takes a redelivery for a duplicate when the entry is behind the record.",
    caught_by=("nothing_lost",),
    also=("dead_letters_complete", "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

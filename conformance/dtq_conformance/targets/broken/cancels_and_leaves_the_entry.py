"""A cancellation in two steps, of which the second never comes."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("cancel", " then acknowledge(KEYS[1], task.entry_id)\n", " then\n")


DEFECT = Defect(
    "cancels_and_leaves_the_entry",
    "Cancels a waiting task and leaves its entry in the stream.",
    caught_by=("one_way_leads_to_each_unfinished_task",),
    also=("keys_as_promised", "nothing_left_behind"),
    put_in=_put_in)

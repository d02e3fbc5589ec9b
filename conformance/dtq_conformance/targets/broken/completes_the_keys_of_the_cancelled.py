"""Says of the key of a cancelled task that it was completed."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("cancel", "cancelled = 'failed'", "cancelled = 'completed'")


DEFECT = Defect(
    "completes_the_keys_of_the_cancelled",
    "Says of the key of a cancelled task that it was completed.",
    caught_by=("keys_as_promised", "one_way_leads_to_each_unfinished_task"), also=(),
    put_in=_put_in)

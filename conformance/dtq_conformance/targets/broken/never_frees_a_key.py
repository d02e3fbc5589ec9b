"""A settlement that leaves the record of the key at `processing`."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  if task.idempotency_key then\n"
            "    local record",
            "  if false then\n"
            "    local record")


DEFECT = Defect(
    "never_frees_a_key",
    "Settles a task and leaves its key as that of an unfinished one.",
    caught_by=("one_task_per_key",),
    also=("answers_as_promised", "fields_as_promised", "keys_as_promised",
          "nothing_left_behind", "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

"""Enqueues each submission a second time, under another id."""

from __future__ import annotations

from typing import Any

from dtq_reference.operations import Submitted
from dtq_reference.queue import Queue

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    submit = Queue.submit

    def submit_twice(self: Queue, **fields: Any) -> Submitted:
        accepted = submit(self, **fields)
        submit(self, **{name: value for name, value in fields.items() if name != "task_id"})
        return accepted

    Queue.submit = submit_twice  # type: ignore[method-assign]


DEFECT = Defect(
    "enqueues_a_copy", "Enqueues each submission a second time, under another id.",
    caught_by=("nothing_invented",),
    also=("commands_as_promised", "dead_letters_complete", "depth_is_exact",
          "duplicates_justified", "fields_as_promised", "keys_as_promised", "nothing_left_behind",
          "nothing_lost", "one_task_per_key", "one_way_leads_to_each_unfinished_task",
          "workers_as_promised"),
    put_in=_put_in)

"""Announces a success before it is recorded, and again when it is."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  local settled = 'outcome:' .. outcome.entry_id\n",
            "  local settled = 'outcome:' .. outcome.entry_id\n"
            "  if not outcome.error_class then\n"
            "    publish('TASK_SUCCEEDED', {task_id = outcome.task_id})\n"
            "  end\n")


DEFECT = Defect(
    "announces_before_the_step",
    "Announces a success before it is recorded, and again when it is.",
    caught_by=("one_event_per_transition",), also=(),
    put_in=_put_in)

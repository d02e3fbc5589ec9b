"""Records an outcome whoever reports it, a holder that lost its lease too."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "    return supersede(task, outcome, status)\n", "")


DEFECT = Defect(
    "settles_without_fencing",
    "Records an outcome whoever reports it, a holder that lost its lease too.",
    caught_by=("one_terminal_state",),
    also=("dead_letters_complete", "one_event_per_transition",
          "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

"""Acknowledges what it has taken and not started when it is asked to stop."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("release", "  set_waiting(stream, entry[1])\n",
            "  acknowledge(stream, entry[1])\n")


DEFECT = Defect(
    "acknowledges_unstarted_on_stop",
    "Acknowledges what it has taken and not started when it is asked to stop.",
    caught_by=("drained_on_stop",),
    also=("attempts_accounted_for", "keys_as_promised", "nothing_lost",
          "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

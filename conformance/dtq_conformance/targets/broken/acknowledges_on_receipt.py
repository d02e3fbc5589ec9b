"""Acknowledges an entry when it is taken, not when it is settled."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "local function hand_over(entry, is_again)\n",
            "local function hand_over(entry, is_again)\n"
            "  acknowledge(KEYS[entry.level], entry.id)\n")


DEFECT = Defect(
    "acknowledges_on_receipt",
    "Acknowledges an entry when it is taken, not when it is settled.",
    caught_by=("nothing_lost",),
    also=("cancelled_stays_cancelled", "dead_letters_complete", "depth_is_exact",
          "drained_on_stop", "fields_as_promised", "keys_as_promised", "no_start_after_ttl",
          "nothing_left_behind", "one_way_leads_to_each_unfinished_task",
          "what_was_answered_survives", "workers_as_promised"),
    put_in=_put_in)

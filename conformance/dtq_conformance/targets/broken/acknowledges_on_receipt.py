"""Acknowledges an entry when it is taken, not when it is settled."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "-- Mark a task as running here and put it into the answer.\n"
            "local function hand_over(level, entry_id, task)\n",
            "local function hand_over(level, entry_id, task)\n"
            "  acknowledge(KEYS[level], entry_id)\n")


DEFECT = Defect(
    "acknowledges_on_receipt",
    "Acknowledges an entry when it is taken, not when it is settled.",
    caught_by=("nothing_lost",), also=("dead_letters_complete", "drained_on_stop"),
    put_in=_put_in)

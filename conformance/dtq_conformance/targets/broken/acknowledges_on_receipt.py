"""Acknowledges an entry when it is taken, not when it is settled."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "             'entry_id', entry_id, 'losses', task.losses, 'started_at', now)\n",
            "             'entry_id', entry_id, 'losses', task.losses, 'started_at', now)\n"
            "  acknowledge(KEYS[level], entry_id)\n")


DEFECT = Defect(
    "acknowledges_on_receipt", "Acknowledges an entry when it is taken, not when it is settled.",
    caught_by=("nothing_lost",), also=("dead_letters_complete", "drained_on_stop"), put_in=_put_in)

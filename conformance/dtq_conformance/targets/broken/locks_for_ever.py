"""Locks the scheduler without an expiry, so that nobody follows a leader that died."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "call.consumer, 'PX', call.lock_ms)", "call.consumer)")


DEFECT = Defect(
    "locks_for_ever",
    "Locks the scheduler without an expiry, so that nobody follows a leader that died.",
    caught_by=("nothing_lost",),
    also=("attempts_bounded", "keys_as_promised", "nothing_left_behind"),
    put_in=_put_in)

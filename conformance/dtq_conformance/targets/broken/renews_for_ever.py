"""Renews what it has in hand without a limit, also for a handler that hangs with the loop."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("renew", "known[5] + known[6] + call.lease_ms", "math.huge")


DEFECT = Defect(
    "renews_for_ever",
    "Renews what it has in hand without a limit, also for a handler that hangs with the loop.",
    caught_by=("nothing_lost",), also=(),
    put_in=_put_in)

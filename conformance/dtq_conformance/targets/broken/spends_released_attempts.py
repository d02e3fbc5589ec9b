"""Gives back what it has not started without saying so: the next take counts it as lost."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("release", "'status', 'queued')", "'status', 'running')")


DEFECT = Defect(
    "spends_released_attempts",
    "Gives back what it has not started without saying so: the next take counts it as lost.",
    caught_by=("drained_on_stop", "attempts_accounted_for"),
    also=("keys_as_promised", "nothing_lost"),
    put_in=_put_in)

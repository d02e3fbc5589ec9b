"""Reads under its worker's id, without the incarnation that tells its processes apart."""

from __future__ import annotations

from dtq_reference.calls import Identity

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    Identity.consumer = property(lambda self: self.worker_id)  # type: ignore[assignment]


DEFECT = Defect(
    "reads_under_its_id",
    "Reads under its worker's id, without the incarnation that tells its processes apart.",
    caught_by=("keys_as_promised",),
    also=("attempts_bounded", "capacity_respected", "dead_letters_complete", "drained_on_stop",
          "duplicates_justified", "gives_way_to_its_namesake", "nothing_lost",
          "one_holder_at_a_time", "attempts_accounted_for", "strict_priority"),
    put_in=_put_in)

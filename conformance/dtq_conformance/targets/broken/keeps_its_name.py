"""Reads under its worker id alone: a process has the name of the one that had the id before."""

from __future__ import annotations

from dtq_reference import worker
from dtq_reference.calls import Identity

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def always_the_same(worker_id: str, _: str) -> Identity:
        return Identity(worker_id, "00000000")

    worker.Identity = always_the_same  # type: ignore[attr-defined, assignment]


DEFECT = Defect(
    "keeps_its_name",
    "Reads under its worker id alone: a process has the name of the one that had the id before.",
    caught_by=("attempts_bounded", "one_holder_at_a_time"),
    also=("capacity_respected", "dead_letters_complete", "drained_on_stop",
          "duplicates_justified", "gives_way_to_its_namesake", "nothing_lost"),
    put_in=_put_in)

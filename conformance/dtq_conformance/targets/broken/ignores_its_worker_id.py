"""Draws its worker's id, whatever id it was given."""

from __future__ import annotations

from dtq_reference import worker
from dtq_reference.calls import Identity

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def drawn(_: str, incarnation: str) -> Identity:
        return Identity(f"worker-{incarnation}", incarnation)

    worker.Identity = drawn  # type: ignore[attr-defined, assignment]


DEFECT = Defect(
    "ignores_its_worker_id",
    "Draws its worker's id, whatever id it was given.",
    caught_by=("workers_as_promised",),
    also=("keys_as_promised", "answers_as_promised", "fields_as_promised"),
    put_in=_put_in)

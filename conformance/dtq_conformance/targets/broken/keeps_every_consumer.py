"""Never removes the consumer of a process that is gone."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("sweep", "if about['pending'] == 0 and", "if false and")


DEFECT = Defect(
    "keeps_every_consumer",
    "Never removes the consumer of a process that is gone.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)

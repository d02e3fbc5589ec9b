"""Makes dead letters without the metadata of their task."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    for script in ("settle", "take"):
        rewrite(script, "'payload', task.payload, 'metadata', task.metadata,",
                "'payload', task.payload,")


DEFECT = Defect(
    "leaves_the_metadata_out_of_letters",
    "Makes dead letters without the metadata of their task.",
    caught_by=("keys_as_promised",), also=("answers_as_promised", "fields_as_promised"),
    put_in=_put_in)

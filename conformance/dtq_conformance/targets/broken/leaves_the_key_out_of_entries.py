"""Makes entries without the field for the idempotency key."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "task.timeout_ms, 'idempotency_key', task.idempotency_key or '',",
            "task.timeout_ms,")


DEFECT = Defect(
    "leaves_the_key_out_of_entries",
    "Makes entries without the field for the idempotency key.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)

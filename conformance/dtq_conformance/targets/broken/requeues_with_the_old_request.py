"""Requeues a task with the request to cancel that its first life was sent."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("requeue", "'retry_delay_ms', 'cancel_requested',\n", "'retry_delay_ms',\n")


DEFECT = Defect(
    "requeues_with_the_old_request",
    "Requeues a task with the request to cancel that its first life was sent.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)

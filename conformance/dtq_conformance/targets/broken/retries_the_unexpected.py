"""Takes every exception that it does not know for one that is worth a retry."""

from __future__ import annotations

from dtq_reference import handlers

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    vars(handlers)["RETRYABLE"] = (*handlers.RETRYABLE, RuntimeError)


DEFECT = Defect(
    "retries_the_unexpected",
    "Takes every exception that it does not know for one that is worth a retry.",
    caught_by=("attempts_bounded",), also=("dead_letters_complete",),
    put_in=_put_in)

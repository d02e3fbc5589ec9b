"""Tries again what its handler says no further attempt can mend."""

from __future__ import annotations

from dtq_reference import errors, handlers

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    vars(handlers)["RETRYABLE"] = (*handlers.RETRYABLE, errors.PermanentError)


DEFECT = Defect(
    "retries_what_is_permanent",
    "Tries again what its handler says no further attempt can mend.",
    caught_by=("attempts_bounded", "handlers_as_promised"),
    also=("answers_as_promised", "dead_letters_complete", "fields_as_promised",
          "keys_as_promised"),
    put_in=_put_in)

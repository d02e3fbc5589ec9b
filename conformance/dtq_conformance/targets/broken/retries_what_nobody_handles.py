"""Tries a task again whose type has no handler."""

from __future__ import annotations

from typing import Any

from dtq_reference import handlers
from dtq_reference.errors import RetryableError

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    find = handlers.find

    def find_or_try_again(name: str) -> Any:
        try:
            return find(name)
        except Exception as error:
            raise RetryableError(str(error)) from error

    handlers.find = find_or_try_again


DEFECT = Defect(
    "retries_what_nobody_handles",
    "Tries a task again whose type has no handler.",
    caught_by=("fields_as_promised",), also=(),
    put_in=_put_in)

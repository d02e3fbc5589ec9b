"""Does not say of a task that its result is not kept any more."""

from __future__ import annotations

from typing import Any

import msgspec
from dtq_reference import operations, task

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    read = task.task_from

    def read_as_ever(fields: dict[str, str], result: bytes | None) -> Any:
        return msgspec.structs.replace(read(fields, result), result_expired=False)

    vars(operations)["task_from"] = read_as_ever


DEFECT = Defect(
    "hides_that_results_expired",
    "Does not say of a task that its result is not kept any more.",
    caught_by=("handlers_as_promised",), also=(),
    put_in=_put_in)

"""Tells handlers an id of their worker that it drew, whatever id the worker was given."""

from __future__ import annotations

import secrets
from typing import Any

from dtq_reference import executor
from dtq_reference.handlers import TaskContext

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    drawn = f"worker-{secrets.token_hex(4)}"

    def context(task_id: str, attempt: int, _: str, *others: Any) -> TaskContext:
        return TaskContext(task_id, attempt, drawn, *others)

    executor.TaskContext = context  # type: ignore[attr-defined, assignment]


DEFECT = Defect(
    "ignores_its_worker_id",
    "Tells handlers an id of their worker that it drew, whatever id the worker was given.",
    caught_by=("workers_as_promised",),
    also=("keys_as_promised", "answers_as_promised", "fields_as_promised"),
    put_in=_put_in)

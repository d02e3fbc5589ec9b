"""Shows a running task as active, which is none of the nine states."""

from __future__ import annotations

from typing import Any

from dtq_reference import operations, task
from msgspec.structs import replace

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    read = task.task_from

    def read_and_rename(fields: dict[str, str], result: bytes | None) -> Any:
        found = read(fields, result)
        return replace(found, status="active") if found.status == "running" else found

    vars(operations)["task_from"] = read_and_rename


DEFECT = Defect(
    "shows_running_tasks_as_active",
    "Shows a running task as active, which is none of the nine states.",
    caught_by=("fields_as_promised",),
    also=("answers_as_promised", "keys_as_promised", "nothing_lost", "one_terminal_state",
          "paused_means_paused", "requeue_begins_anew", "what_was_answered_survives"),
    put_in=_put_in)

"""Answers an echo with nothing."""

from __future__ import annotations

import importlib
from typing import Any

from dtq_reference import handlers

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    async def silence(payload: dict[str, Any], ctx: handlers.TaskContext) -> Any:
        return {}

    importlib.import_module("dtq_reference.demo_tasks")
    handlers._registry["echo_task"] = silence


DEFECT = Defect(
    "echoes_nothing",
    "Answers an echo with nothing.",
    caught_by=("handlers_as_promised",), also=(),
    put_in=_put_in)

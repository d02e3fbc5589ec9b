"""Logs each task that it executes, with its payload."""

from __future__ import annotations

import logging
from typing import Any

from dtq_reference.executor import Executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    execute = Executor.execute

    async def log_and_execute(self: Executor, hold: Any) -> Any:
        logging.getLogger("dtq.worker").info("execute %s", hold.taken.payload.decode())
        return await execute(self, hold)

    Executor.execute = log_and_execute  # type: ignore[method-assign]


DEFECT = Defect(
    "logs_payloads",
    "Logs each task that it executes, with its payload.",
    caught_by=("secrets_stay_secret",), also=(),
    put_in=_put_in)

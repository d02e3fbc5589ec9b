"""Logs each task that it executes, with its payload."""

from __future__ import annotations

import logging
from typing import Any

from dtq_reference.executor import Executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    start = Executor.start

    def log_and_start(self: Executor, hold: Any) -> None:
        logging.getLogger("dtq.worker").info("execute %s", hold.taken.payload.decode())
        start(self, hold)

    Executor.start = log_and_start  # type: ignore[method-assign]


DEFECT = Defect(
    "logs_payloads",
    "Logs each task that it executes, with its payload.",
    caught_by=("secrets_stay_secret",), also=(),
    put_in=_put_in)

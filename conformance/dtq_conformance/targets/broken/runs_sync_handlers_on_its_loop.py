"""Lets its event loop wait for each synchronous handler."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dtq_reference import executor

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    class AndWait(ThreadPoolExecutor):
        """Returns when what it was given has been done."""

        def submit(self, *arguments: Any, **named: Any) -> Any:
            done = super().submit(*arguments, **named)
            done.exception()
            return done

    vars(executor)["ThreadPoolExecutor"] = AndWait


DEFECT = Defect(
    "runs_sync_handlers_on_its_loop",
    "Lets its event loop wait for each synchronous handler.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)

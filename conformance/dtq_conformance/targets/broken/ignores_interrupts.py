"""Does not stop at SIGINT."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    add = asyncio.SelectorEventLoop.add_signal_handler

    def add_all_but_one(self: Any, number: int, *rest: Any) -> None:
        add(self, number, *((lambda: None,) if number == signal.SIGINT else rest))

    asyncio.SelectorEventLoop.add_signal_handler = add_all_but_one  # type: ignore[assignment]


DEFECT = Defect(
    "ignores_interrupts",
    "Does not stop at SIGINT.",
    caught_by=("workers_as_promised",), also=("commands_as_promised", "drained_on_stop"),
    put_in=_put_in)

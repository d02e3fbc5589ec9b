"""Fences a settlement by holder and attempt alone; failures are sent twice, once much later."""

from __future__ import annotations

import asyncio
from typing import Any

from dtq_reference import calls
from dtq_reference.settler import Settler

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "\n      or entry_id ~= outcome.entry_id or", "\n      or")
    rewrite("settle", "if note and", "if status ~= 'running' and note and")
    settle = Settler._settle

    async def settle_and_send_again(self: Settler, batch: list[Any]) -> None:
        await settle(self, batch)
        if failed := [outcome for _, outcome in batch if outcome.error_class]:
            again = calls.settle(*self._hands.who, failed)
            late = type(self)(self._hands)._transport.call_again(again)
            asyncio.get_running_loop().call_later(1.5, asyncio.ensure_future, late)
    Settler._settle = settle_and_send_again  # type: ignore[method-assign]


DEFECT = Defect("fences_without_the_entry",
                "Fences a settlement by holder and attempt alone, not by the queue's entry.",
                caught_by=("one_terminal_state",),
                also=("one_way_leads_to_each_unfinished_task",), put_in=_put_in)

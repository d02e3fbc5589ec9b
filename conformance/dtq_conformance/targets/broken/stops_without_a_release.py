"""A worker that executes nothing has nothing to give back, it believes."""

from __future__ import annotations

from typing import Any

from dtq_reference.calls import Call
from dtq_reference.worker import Worker

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    send = Worker._try

    async def send_what_seems_needed(self: Worker, call: Call, *, limit_s: float) -> Any:
        if call.script == "release" and not self.hands.holds:
            return None
        return await send(self, call, limit_s=limit_s)

    Worker._try = send_what_seems_needed  # type: ignore[method-assign]


DEFECT = Defect(
    "stops_without_a_release",
    "Gives nothing back when it executes nothing, as if there could not be what it never saw.",
    caught_by=("keys_as_promised", "drained_on_stop"),
    also=("attempts_accounted_for", "nothing_lost"),
    put_in=_put_in)

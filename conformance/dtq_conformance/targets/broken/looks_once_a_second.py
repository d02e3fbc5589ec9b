"""Looks for new work once a second, and hears no doorbell."""

from __future__ import annotations

import asyncio

from dtq_reference.poller import Poller

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    async def wait(self: Poller, last_ids: list[str]) -> None:
        await asyncio.sleep(1.0)

    Poller._doorbell = wait  # type: ignore[method-assign]


DEFECT = Defect(
    "looks_once_a_second",
    "Looks for new work once a second, and hears no doorbell.",
    caught_by=("workers_as_promised",),
    also=("retry_delays_in_envelope", "strict_priority", "no_start_after_ttl", "nothing_lost"),
    put_in=_put_in)

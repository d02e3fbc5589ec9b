"""Renews whatever is pending under its name, and after a lost answer it is long in asking again."""

from __future__ import annotations

import asyncio
from typing import Any

from dtq_reference.poller import Poller

from dtq_conformance.targets.defect import Defect, rewrite

PAUSE_LEASES = 10
"""For how many leases it asks for nothing more: that holds the window open."""


def _put_in() -> None:
    here = "local worker = redis.call('HMGET', KEYS[11], 'incarnation', 'status')\n"
    rewrite("renew", here,
            "local named = {}\n"
            "for _, hold in ipairs(call.holds) do named[hold[2]] = true end\n"
            "for level = 1, 10 do\n"
            "  for _, found in ipairs(pending_of(KEYS[level], call.consumer, 10000)) do\n"
            "    if not named[found[1]] then\n"
            "      redis.call('XCLAIM', KEYS[level], GROUP, call.consumer, 0, found[1], 'JUSTID')\n"
            "    end\n  end\nend\n" + here)
    take = Poller._take

    async def take_and_pause(self: Poller, room: int) -> Any:
        reply = None
        try:
            reply = await take(self, room)
        finally:
            if reply is None:
                draining = asyncio.ensure_future(self._hands.draining.wait())
                await asyncio.wait({draining}, timeout=(
                    PAUSE_LEASES * self._hands.settings.visibility_timeout_s))
        return reply

    Poller._take = take_and_pause  # type: ignore[method-assign]


DEFECT = Defect(
    "renews_what_it_never_saw",
    "Renews whatever is pending under its name, and after a lost answer it is long in asking "
    "again.",
    caught_by=("attempts_accounted_for", "nothing_lost"), also=(),
    put_in=_put_in)

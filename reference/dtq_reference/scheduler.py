"""Move due retries and delayed tasks into their streams. Every worker has a scheduler; the one
that holds the lock is the leader. The leader also removes what dead workers left behind."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING

from redis.exceptions import ResponseError

from dtq_reference import calls
from dtq_reference.transport import UNANSWERED, AsyncTransport

if TYPE_CHECKING:
    from dtq_reference.worker import Hands

log = logging.getLogger("dtq.scheduler")

JITTER = 0.1


class Scheduler:
    """Promotes at its interval, and without a pause while more is due."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._transport = AsyncTransport(hands.settings.redis_url, hands.keys.prefix)
        self._queues = [hands.queue]
        self._next_sweep = 0.0

    async def run(self) -> None:
        """Promote until the worker drains."""
        hands = self._hands
        while not hands.draining.is_set():
            try:
                reply = await self._promote()
                if reply.leader and time.monotonic() >= self._next_sweep:
                    await self._sweep()
            except (*UNANSWERED, ResponseError) as error:
                log.warning("promote: %s", error)
                reply = None
            if reply is None or not (reply.more and reply.promoted):
                interval_s = hands.settings.scheduler_interval_s
                await asyncio.sleep(interval_s * random.uniform(1 - JITTER, 1))

    async def _promote(self) -> calls.PromoteReply:
        hands = self._hands
        call = calls.promote(hands.keys, hands.settings, hands.identity, self._queues)
        reply = calls.read_promote(await self._transport.call(call))
        if reply.unknown_queue:
            names = await self._transport.redis.smembers(hands.keys.queues)
            self._queues = sorted(name.decode() for name in names)
        return reply

    async def _sweep(self) -> None:
        hands = self._hands
        self._next_sweep = time.monotonic() + 3 * hands.settings.heartbeat_interval_s
        for name in await self._transport.redis.smembers(hands.keys.queues):
            await self._transport.call(calls.sweep(hands.keys, hands.settings, name.decode()))

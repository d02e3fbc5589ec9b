"""Move due retries and delayed tasks into their streams. Every worker has a scheduler; the one
that holds the lock is the leader. The leader also removes what dead workers left behind."""

from __future__ import annotations

import asyncio
import random
import time

from dtq_reference import calls
from dtq_reference.hands import Hands

JITTER = 0.1


class Scheduler:
    """Promotes at its interval, and without a pause while more is due."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._queues = [hands.queue]
        self._next_sweep = 0.0

    async def run(self) -> None:
        """Promote until the worker drains."""
        hands = self._hands
        while not hands.draining.is_set():
            reply = calls.read_promote(await hands.transport.call_again(
                calls.promote(hands.keys, hands.settings, hands.identity, self._queues)))
            hands.count(reply.ended)
            if reply.unknown_queue:
                self._queues = await self._known_queues()
            if reply.leader and time.monotonic() >= self._next_sweep:
                self._next_sweep = time.monotonic() + 3 * hands.settings.heartbeat_interval_s
                for queue in await self._known_queues():
                    await hands.transport.call(calls.sweep(hands.keys, hands.settings, queue))
            if not (reply.more and reply.promoted):
                interval_s = hands.settings.scheduler_interval_s
                await asyncio.sleep(interval_s * random.uniform(1 - JITTER, 1))

    async def _known_queues(self) -> list[str]:
        names = await self._hands.transport.redis.smembers(self._hands.keys.queues)
        return sorted(name.decode() for name in names)

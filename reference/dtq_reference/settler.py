"""Settle: record how attempts ended. What ends while a call is under way goes with the next."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

from redis.exceptions import ResponseError

from dtq_reference import calls, handlers
from dtq_reference.calls import Outcome
from dtq_reference.transport import AsyncTransport

if TYPE_CHECKING:
    from dtq_reference.worker import Hands, Hold

log = logging.getLogger("dtq.settler")


class Settler:
    """Sends outcomes until they are answered; an attempt stays in hand until then."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._transport = AsyncTransport(hands.settings.redis_url, hands.keys.prefix)
        self._waiting: list[tuple[Hold, Outcome]] = []
        self._added = asyncio.Event()

    def add(self, hold: Hold, outcome: Outcome) -> None:
        """Hand in how an attempt ended."""
        self._waiting.append((hold, outcome))
        self._added.set()

    async def run(self) -> None:
        """Settle for ever."""
        while True:
            await self._added.wait()
            self._added.clear()
            while self._waiting:
                await self._settle(list(self._waiting))

    async def _settle(self, batch: list[tuple[Hold, Outcome]]) -> None:
        hands = self._hands
        call = calls.settle(hands.keys, hands.settings, hands.identity, hands.queue,
                            [outcome for _, outcome in batch])
        try:
            states = calls.read_settle(await self._transport.call_again(call))
        except ResponseError as error:
            log.warning("settle: %s; trying again", error)
            await asyncio.sleep(0.1)
            return
        del self._waiting[: len(batch)]
        for (hold, outcome), state in zip(batch, states, strict=True):
            hands.drop(hold)
            hands.metrics.settled(hands.identity.worker_id, outcome, state,
                                  total_s=time.time() - outcome.taken.created_at / 1000)
            handlers.completed(outcome, state)
            if state == "superseded":
                log.warning("task %s: attempt %d was superseded, its outcome is dropped",
                            outcome.taken.task_id, outcome.taken.attempt)
        self._count(Counter(states))

    def _count(self, states: Counter[str]) -> None:
        hands = self._hands
        hands.processed += states["succeeded"]
        hands.retried += states["retrying"]
        hands.failed += states["failed"] + states["dead_lettered"] + states["cancelled"]
        hands.superseded += states["superseded"]

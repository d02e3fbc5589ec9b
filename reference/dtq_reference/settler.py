"""Settle: record how attempts ended. What ends while a call is under way goes with the next."""

from __future__ import annotations

import asyncio
import time

from dtq_reference import calls, handlers
from dtq_reference.hands import Hands, Hold, log
from dtq_reference.transport import AsyncTransport


class Settler:
    """Sends outcomes until they are answered; an attempt stays in hand until then. Has a connection
    of its own: what is done must not wait until another one is made."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._transport = AsyncTransport(hands.settings.redis_url, hands.keys.prefix)
        self._waiting: list[tuple[Hold, calls.Outcome]] = []
        self._added = asyncio.Event()

    def add(self, hold: Hold, outcome: calls.Outcome) -> None:
        """Hand in how an attempt ended."""
        self._waiting.append((hold, outcome))
        self._added.set()

    async def run(self) -> None:
        """Settle for ever."""
        while True:
            while self._waiting:
                await self._settle(list(self._waiting))
            self._added.clear()
            await self._added.wait()

    async def _settle(self, batch: list[tuple[Hold, calls.Outcome]]) -> None:
        hands = self._hands
        states = calls.read_settle(await self._transport.call_again(
            calls.settle(*hands.who, [outcome for _, outcome in batch])))
        del self._waiting[: len(batch)]
        hands.ended.update(states)
        for (hold, outcome), state in zip(batch, states, strict=True):
            hands.drop(hold)
            hands.metrics.settled(hands.identity.worker_id, outcome, state,
                                  total_s=time.time() - outcome.taken.created_at / 1000)
            handlers.completed(outcome, state)
            if state == "superseded":
                log.warning("task %s: attempt %d was superseded, its outcome is dropped",
                            outcome.taken.task_id, outcome.taken.attempt)

"""Renew the leases of what the process has in hand, and show that the worker lives."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING

from dtq_reference import calls
from dtq_reference.executor import Executor
from dtq_reference.poller import Register
from dtq_reference.settings import HEARTBEAT_JITTER
from dtq_reference.transport import UNANSWERED, AsyncTransport

if TYPE_CHECKING:
    from dtq_reference.worker import Hands

log = logging.getLogger("dtq.heartbeat")


class Heartbeat:
    """Beats at its interval, also while the worker drains."""

    def __init__(self, hands: Hands, executor: Executor, *, register: Register) -> None:
        self._hands = hands
        self._transport = AsyncTransport(hands.settings.redis_url)
        self._executor = executor
        self._register = register

    async def run(self) -> None:
        """Beat for ever."""
        interval_s = self._hands.settings.heartbeat_interval_s
        while True:
            await asyncio.sleep(interval_s * random.uniform(1 - HEARTBEAT_JITTER,
                                                            1 + HEARTBEAT_JITTER))
            try:
                await self.beat()
            except UNANSWERED as error:
                log.warning("renew: no answer (%s)", error)

    async def beat(self) -> None:
        """Renew once."""
        hands = self._hands
        holds = [hold for hold in hands.holds.values() if not hold.lost]
        sent = time.monotonic()
        reply = await self._transport.call(calls.renew(
            hands.keys, hands.settings, hands.identity, hands.queue,
            [hold.taken for hold in holds], hands.about(self._status())))
        state, held = calls.read_renew(reply)
        for hold, is_held in zip(holds, held, strict=True):
            if is_held:
                hold.lease_until = sent + hands.settings.visibility_timeout_s
            elif hold.taken.hold in hands.holds:
                hold.lost = True
                log.warning("task %s: attempt %d is no longer ours", hold.taken.task_id,
                            hold.taken.attempt)
        if hands.draining.is_set():
            return
        if state == "absent":
            await self._register(again=True)
        elif state != "ours":
            log.warning("the worker's hash is %s; draining", state)
            hands.draining.set()

    def _status(self) -> str:
        hands = self._hands
        if hands.draining.is_set():
            return "draining"
        if self._executor.overdue >= hands.settings.worker_concurrency:
            return "overdue"
        return "busy" if hands.holds else "ready"

"""Take work while there is room for it, and wait at the doorbell while there is none to take."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from math import ceil

from dtq_reference import calls
from dtq_reference.calls import Taken, TakeReply
from dtq_reference.hands import Hands

DOORBELL_LIMIT_S = 1.0
"""The longest blocking read; shorter than the socket timeout."""

CLOSED_LIMIT_S = 0.25
"""How often a worker looks again whose queue is paused, or who must first empty its hands."""

JITTER = 0.1

BATCHES = 3
SMALLEST_BATCH = 8
"""A take asks for a part of the capacity, so that one batch can be taken and one recorded while
another one is executed; not so for few tasks, since what a call costs by itself would be more."""


class Poller:
    """Takes what has waited longest on the highest level, ended leases included."""

    def __init__(self, hands: Hands, begin: Callable[[list[Taken], float], None]) -> None:
        self._hands = hands
        self._begin = begin
        self._batch = max(SMALLEST_BATCH, ceil(hands.settings.worker_concurrency / BATCHES))
        self._next_reap = 0.0
        self._blocked = False
        self._number = 0
        self._is_answered = False

    async def run(self) -> None:
        """Take until the worker drains. Says hello first: whatever ended the run before this one,
        Redis may have forgotten the worker or its groups."""
        hands = self._hands
        await hands.register(again=True)
        while not hands.draining.is_set():
            hands.changed.clear()
            if (room := hands.room) <= 0:
                await hands.change()
                continue
            reply = await self._take(min(room, self._batch))
            if reply.state == "paused" or reply.blocked:
                await hands.change(min(CLOSED_LIMIT_S, hands.settings.reap_interval_s))
            elif reply.last_ids:
                await self._doorbell(reply.last_ids)

    async def _take(self, room: int) -> TakeReply:
        """Send one take and begin what it gave. An answer that was lost is not waited for: the
        next take tells what is in hand, and is given what this one took."""
        hands = self._hands
        sent = time.monotonic()
        reap = self._blocked or sent >= self._next_reap
        self._number += 1
        in_hand = [hold.taken for hold in hands.holds.values()]
        take = calls.take(*hands.who, room=room, in_hand=in_hand, reap=reap,
                          number=self._number if self._is_answered else 0)
        self._is_answered = False
        reply = calls.read_take(await hands.transport.call(take))
        self._is_answered = True
        hands.count(reply.ended)
        self._blocked = reply.blocked
        if reap and reply.last_ids:  # all levels were looked at, not only the full ones
            self._next_reap = sent + hands.settings.reap_interval_s * random.uniform(1 - JITTER, 1)
        if reply.state == "absent":
            await hands.register(again=True)
        elif reply.state not in ("ours", "paused"):
            hands.drain()
        elif reply.tasks and not hands.draining.is_set():
            self._begin(reply.tasks, sent + hands.settings.visibility_timeout_s)
        return reply

    async def _doorbell(self, last_ids: list[str]) -> None:
        """Wait until an entry is added to one of the streams, or until the next look for ended
        leases. A plain XREAD: it takes nothing, and its content is dropped."""
        hands = self._hands
        left_s = min(DOORBELL_LIMIT_S, self._next_reap - time.monotonic())
        if left_s > 0:
            streams = dict(zip(hands.keys.streams(hands.queue), last_ids, strict=True))
            await hands.transport.redis.xread(streams, count=1, block=max(1, round(left_s * 1000)))

"""Take work while there is room for it, and wait at the doorbell while there is none to take."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from redis.exceptions import ResponseError

from dtq_reference import calls
from dtq_reference.calls import Taken, TakeReply
from dtq_reference.executor import Executor
from dtq_reference.transport import UNANSWERED, AsyncTransport

if TYPE_CHECKING:
    from dtq_reference.worker import Hands

log = logging.getLogger("dtq.poller")

DOORBELL_LIMIT_S = 1.0
"""The longest blocking read; shorter than the socket timeout."""

PAUSED_LIMIT_S = 0.25
"""How often a worker looks whether its paused queue was resumed."""

JITTER = 0.1


class Register(Protocol):
    """How a worker says hello again."""

    def __call__(self, *, again: bool) -> Awaitable[str]: ...


class Poller:
    """Takes what has waited longest on the highest level, ended leases included."""

    def __init__(self, hands: Hands, executor: Executor, *,
                 begin: Callable[[list[Taken], float], None], register: Register) -> None:
        self._hands = hands
        self._transport = AsyncTransport(hands.settings.redis_url, hands.keys.prefix)
        self._executor = executor
        self._begin = begin
        self._register = register
        self._next_reap = 0.0
        self._blocked = False

    async def run(self) -> None:
        """Take until the worker drains."""
        while not self._hands.draining.is_set():
            self._hands.changed.clear()
            room = self._room()
            if room <= 0:
                await self._wait_for_change(None)
                continue
            reply = await self._take(room)
            if reply is None:
                continue
            if reply.state == "paused":
                await self._wait_for_change(min(PAUSED_LIMIT_S,
                                                self._hands.settings.reap_interval_s))
            elif self._blocked:
                await self._wait_for_change(self._hands.settings.reap_interval_s)
            elif reply.last_ids:
                await self._doorbell(reply.last_ids)

    def _room(self) -> int:
        """Free capacity; none while a task is in hand that runs alone, and none while nothing
        would renew a lease: a short one would end before the heartbeat's process has started."""
        hands = self._hands
        if hands.alone or not hands.is_beating:
            return 0
        return hands.settings.worker_concurrency - len(hands.holds) - self._executor.overdue

    async def _take(self, room: int) -> TakeReply | None:
        """Send one take and begin what it gave. An answer that was lost is not waited for: the
        next take is given what this one took."""
        hands = self._hands
        sent = time.monotonic()
        reap = self._blocked or sent >= self._next_reap
        call = calls.take(hands.keys, hands.settings, hands.identity, hands.queue, room=room,
                          in_hand=[hold.taken for hold in hands.holds.values()],
                          reap=reap)
        try:
            reply = calls.read_take(await self._transport.call(call))
        except (*UNANSWERED, ResponseError) as error:
            log.warning("take: %s", error)
            await asyncio.sleep(random.uniform(0.02, 0.1))
            await self._register(again=True)  # with backoff, however long that takes
            return None
        if reap and reply.last_ids:  # all levels were looked at, not only the full ones
            self._next_reap = sent + hands.settings.reap_interval_s * random.uniform(1 - JITTER, 1)
        if reply.state == "absent":
            await self._register(again=True)
            return None
        if reply.state not in ("ours", "paused"):
            hands.draining.set()
            return None
        self._blocked = reply.blocked
        if reply.tasks and not hands.draining.is_set():
            self._begin(reply.tasks, sent + hands.settings.visibility_timeout_s)
        return reply

    async def _wait_for_change(self, limit_s: float | None) -> None:
        """Wait until something left this process's hands, it drains, or the time is up."""
        waits = [asyncio.ensure_future(self._hands.changed.wait()),
                 asyncio.ensure_future(self._hands.draining.wait())]
        await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _doorbell(self, last_ids: list[str]) -> None:
        """Wait until an entry is added to one of the streams, or until the next look for ended
        leases. A plain XREAD: it takes nothing, and its content is dropped."""
        hands = self._hands
        left_s = min(DOORBELL_LIMIT_S, self._next_reap - time.monotonic())
        if left_s <= 0:
            return
        streams = dict(zip(hands.keys.streams(hands.queue), last_ids, strict=True))
        try:
            await self._transport.redis.xread(streams, count=1, block=max(1, round(left_s * 1000)))
        except (*UNANSWERED, ResponseError):
            return  # the next take says what is wrong

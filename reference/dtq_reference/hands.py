"""What a worker process has in hand. Its duties share it: one takes, one executes, one records, and
each learns here what the others have done.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import Counter
from dataclasses import dataclass, field

from dtq_reference import calls, metrics
from dtq_reference.calls import Ended, HoldName, Identity, Taken
from dtq_reference.keys import Keys
from dtq_reference.settings import Settings
from dtq_reference.transport import AsyncTransport

log = logging.getLogger("dtq.worker")


@dataclass(eq=False, slots=True)
class Hold:
    """An attempt in hand: taken and not settled. Its lease is counted on the monotonic clock,
    from before the request that got or renewed it was sent; so is `began`, its handler's start.
    `is_awaited`: its handler is an async one; `is_late`: it reached its time limit; `packed` is
    what fences it, for the heartbeat."""

    taken: Taken
    lease_until: float
    started: bool = False
    lost: bool = False
    execution: asyncio.Task[None] | None = None
    began: float = 0.0
    is_awaited: bool = False
    is_late: bool = False
    packed: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.packed = calls.pack(self.taken.hold)

    def cancel(self) -> None:
        """Cancel the handler if it is awaited: once, so that it can clear up. A handler in a
        thread or process runs out."""
        if self.is_awaited and self.execution is not None and not self.execution.cancelling():
            self.execution.cancel()


class Hands:
    """All that one worker process of one queue has in hand, and how it reaches Redis.

    `overdue` are handlers that still run although their attempt was settled at its time limit;
    `is_beating` tells whether the process of the heartbeat is there to renew leases, `ended` how
    often attempts ended in which state, `exit_code` how the process will end.
    """

    def __init__(self, settings: Settings, identity: Identity, queue: str) -> None:
        self.settings = settings
        self.identity = identity
        self.queue = queue
        self.keys = Keys(settings.key_prefix)
        self.transport = AsyncTransport(settings.redis_url, settings.key_prefix)
        self.metrics = metrics.for_worker(settings)
        self.metrics.watch(identity.worker_id, lambda: len(self.holds))
        self.holds: dict[HoldName, Hold] = {}
        self.overdue: set[asyncio.Task[None]] = set()
        self.ended: Counter[str] = Counter()
        self.changed = asyncio.Event()
        self.draining = asyncio.Event()
        self.is_beating = False
        self.exit_code = 0

    @property
    def who(self) -> tuple[Keys, Settings, Identity, str]:
        """How this process is named in what it asks of Redis."""
        return (self.keys, self.settings, self.identity, self.queue)

    @property
    def room(self) -> int:
        """Free capacity; none while a task is in hand that runs alone, and none while nothing
        would renew a lease: a short one would end before the heartbeat's process has started."""
        if not self.is_beating or any(hold.taken.alone for hold in self.holds.values()):
            return 0
        return self.settings.worker_concurrency - len(self.holds) - len(self.overdue)

    @property
    def status(self) -> str:
        """What the process says of itself."""
        if self.draining.is_set():
            return "draining"
        if len(self.overdue) >= self.settings.worker_concurrency:
            return "overdue"
        return "busy" if self.holds else "ready"

    def drop(self, hold: Hold) -> None:
        """Take an attempt out of the process's hands."""
        self.holds.pop(hold.taken.hold, None)
        self.changed.set()

    def count(self, ended: Ended) -> None:
        """Count tasks that a script ended."""
        for queue, task_type, status in ended:
            self.metrics.finished(queue.decode(errors="replace"),
                                  task_type.decode(errors="replace"), status.decode())

    def drain(self) -> None:
        """Let the process take nothing more, and stop."""
        self.draining.set()
        self.changed.set()

    async def change(self, limit_s: float | None = None) -> None:
        """Wait until `changed` is set, or until the time is up."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.changed.wait(), limit_s)

    async def register(self, *, again: bool) -> None:
        """Say hello; `again` only if no other process has taken the worker's name."""
        about = {"hostname": socket.gethostname(), "started_at": round(time.time() * 1000),
                 "heartbeat_interval_s": str(self.settings.heartbeat_interval_s),
                 "concurrency": self.settings.worker_concurrency, **self.about()}
        reply = await self.transport.call_again(calls.register(*self.who, about, again=again))
        if reply == b"other":
            log.warning("another process has the name %s; draining", self.identity.worker_id)
            self.drain()

    def about(self) -> dict[str, str | int]:
        """The fields of the worker hash that change while the process lives."""
        ended = self.ended
        return {"status": self.status, "active_tasks": len(self.holds),
                "tasks_processed": ended["succeeded"], "tasks_retried": ended["retrying"],
                "tasks_failed": ended["failed"] + ended["dead_lettered"] + ended["cancelled"]}

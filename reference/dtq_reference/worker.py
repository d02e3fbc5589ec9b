"""The worker process: what it has in hand, and the duties that run beside each other.

`Poller` takes, `Executor` executes, `Settler` records, `Heartbeat` renews, `Scheduler` promotes.
This module joins them, starts them again when they crash, and stops them in good order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from dtq_reference import calls, handlers, metrics
from dtq_reference.calls import Call, Identity, Taken
from dtq_reference.executor import Executor
from dtq_reference.heartbeat import Heartbeat
from dtq_reference.keys import Keys
from dtq_reference.poller import Poller
from dtq_reference.process_pool import ProcessPool
from dtq_reference.scheduler import Scheduler
from dtq_reference.settings import Settings
from dtq_reference.settler import Settler
from dtq_reference.transport import AsyncTransport

log = logging.getLogger("dtq.worker")

FAREWELL_LIMIT_S = 1.0
"""How long at least a stopping worker tries to give back what it never started, and to say
goodbye. What it leaves unsaid is cleared up when its leases have ended."""

OVERDUE_EXIT_CODE = 4
"""How a worker ends whose every slot is held by a handler that outlived its time limit: whoever
watches over it should start another."""


@dataclass(eq=False)
class Hold:
    """An attempt in hand: taken and not settled. Its lease is counted on the monotonic clock,
    from before the request that got or renewed it was sent."""

    taken: Taken
    lease_until: float
    started: bool = False
    lost: bool = False


@dataclass(eq=False)
class Hands:
    """All that a worker process has in hand, shared by its duties. `is_beating` tells whether the
    process of the heartbeat is there to renew it."""

    settings: Settings
    keys: Keys
    identity: Identity
    queue: str
    holds: dict[tuple[int, str, int, str], Hold] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    is_beating: bool = False
    processed: int = 0
    failed: int = 0
    retried: int = 0
    superseded: int = 0
    metrics: metrics.Metrics = metrics.OFF

    @property
    def alone(self) -> bool:
        """Whether a task is in hand that must run alone."""
        return any(hold.taken.alone for hold in self.holds.values())

    def drop(self, hold: Hold) -> None:
        """Take an attempt out of the process's hands."""
        self.holds.pop(hold.taken.hold, None)
        self.changed.set()

    def about(self, status: str) -> dict[str, str | int]:
        """The fields of the worker hash that change while the process lives."""
        return {"status": status, "active_tasks": len(self.holds),
                "tasks_processed": self.processed, "tasks_failed": self.failed,
                "tasks_retried": self.retried}


class Worker:
    """One worker process of one queue."""

    def __init__(self, settings: Settings, queue: str = "default") -> None:
        worker_id = settings.worker_id or f"worker-{uuid.uuid4().hex[:8]}"
        identity = Identity(worker_id, secrets.token_hex(4))
        self.hands = Hands(settings, Keys(settings.key_prefix), identity, queue)
        self.hands.metrics = metrics.for_worker(settings)
        self.hands.metrics.watch(worker_id, lambda: len(self.hands.holds))
        self._transport = AsyncTransport(settings.redis_url, settings.key_prefix)
        self.executor = Executor(settings, worker_id, freed=self.hands.changed.set,
                                 stuck=self._stuck,
                                 pool=ProcessPool(settings) if settings.process_pool else None)
        self.settler = Settler(self.hands)
        self.heartbeat = Heartbeat(self.hands, self.executor, register=self.register)
        self.scheduler = Scheduler(self.hands)
        self.poller = Poller(self.hands, self.executor, begin=self._begin, register=self.register)
        self._executions: set[asyncio.Task[None]] = set()
        self._exit_code = 0

    async def run(self) -> int:
        """Work until asked to stop (SIGTERM or SIGINT), or until every slot is stuck, then drain.
        Returns the exit code. A second signal ends the process at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop)
        await self.register(again=False)
        duties = [loop.create_task(_supervise(name, duty)) for name, duty in (
            ("poller", self.poller.run), ("settler", self.settler.run),
            ("heartbeat", self.heartbeat.run), ("scheduler", self.scheduler.run))]
        log.info("worker %s is ready, concurrency %d", self.hands.identity.consumer,
                 self.hands.settings.worker_concurrency)
        await self.hands.draining.wait()
        await self._stop(duties)
        return self._exit_code

    async def _stop(self, duties: list[asyncio.Task[None]]) -> None:
        """Give back what never started, wait for what did as long as the limit allows, and say
        goodbye. Nothing of it waits for ever, even without Redis."""
        hands = self.hands
        deadline = time.monotonic() + hands.settings.drain_timeout_s
        for hold in [hold for hold in hands.holds.values() if not hold.started]:
            hands.drop(hold)
        started = [hold.taken for hold in hands.holds.values()]
        log.info("draining: %d started", len(started))
        await self._try(calls.release(hands.keys, hands.settings, hands.identity, hands.queue,
                                      started),
                        limit_s=max(FAREWELL_LIMIT_S, hands.settings.drain_timeout_s))
        while hands.holds and (left_s := deadline - time.monotonic()) > 0:
            hands.changed.clear()
            changed = asyncio.ensure_future(hands.changed.wait())
            await asyncio.wait({changed}, timeout=left_s)
            changed.cancel()
        if hands.holds:
            log.warning("drain limit reached with %d unfinished", len(hands.holds))
        for duty in duties:
            duty.cancel()
        await handlers.hooks_done(max(0.0, deadline - time.monotonic()))
        await self._try(calls.goodbye(hands.keys, hands.settings, hands.identity, hands.queue),
                        limit_s=FAREWELL_LIMIT_S)
        log.info("worker %s has stopped", hands.identity.consumer)

    async def _try(self, call: Call, *, limit_s: float) -> None:
        """Send a call until it is answered or the time is up. `asyncio.wait` keeps to its limit
        whatever becomes of a cancellation inside the client."""
        sending = asyncio.ensure_future(self._transport.call_again(call))
        done, _ = await asyncio.wait({sending}, timeout=limit_s)
        if not done:
            sending.cancel()
            log.warning("%s: no answer within %g s", call.script, limit_s)
        elif (error := sending.exception()) is not None:
            log.warning("%s: %s", call.script, error)

    async def register(self, *, again: bool) -> str:
        """Say hello; `again` only if no other process has taken the worker's name."""
        hands = self.hands
        about = {"hostname": socket.gethostname(), "started_at": round(time.time() * 1000),
                 "heartbeat_interval_s": str(hands.settings.heartbeat_interval_s),
                 "concurrency": hands.settings.worker_concurrency, **hands.about("ready")}
        reply = await self._transport.call_again(calls.register(
            hands.keys, hands.settings, hands.identity, hands.queue, about, again=again))
        state: str = reply.decode()
        if state == "other":
            log.warning("another process has the name %s; draining", hands.identity.worker_id)
            hands.draining.set()
        return state

    def _begin(self, tasks: list[Taken], lease_until: float) -> None:
        """Start executing what was taken. The heartbeat is told first: a handler may hold up
        the loop from its first line."""
        holds = [Hold(taken, lease_until) for taken in tasks]
        self.hands.holds |= {hold.taken.hold: hold for hold in holds}
        self.heartbeat.tell()
        for hold in holds:
            waited_s = max(0.0, time.time() - hold.taken.created_at / 1000)
            self.hands.metrics.started(hold.taken, waited_s=waited_s)
            execution = asyncio.get_running_loop().create_task(self._execute(hold))
            self._executions.add(execution)
            execution.add_done_callback(self._executions.discard)

    async def _execute(self, hold: Hold) -> None:
        if self.hands.draining.is_set():
            return
        if time.monotonic() >= hold.lease_until:
            log.warning("task %s: its lease ended before it could start", hold.taken.task_id)
            self.hands.drop(hold)
            return
        hold.started = True
        outcome = await self.executor.execute(hold.taken)
        self.settler.add(hold, outcome)

    def _asked_to_stop(self) -> None:
        if self.hands.draining.is_set():
            log.warning("asked to stop a second time: ending at once")
            os._exit(1)
        self.hands.draining.set()

    def _stuck(self) -> None:
        hands = self.hands
        if not hands.draining.is_set():
            self._exit_code = OVERDUE_EXIT_CODE
            log.error("all %d slots have been held for %g s by handlers past their time limit: "
                      "ending with code %d", hands.settings.worker_concurrency,
                      hands.settings.visibility_timeout_s, OVERDUE_EXIT_CODE)
            hands.draining.set()


async def _supervise(name: str, duty: Callable[[], Awaitable[None]]) -> None:
    """Run a duty for ever; one that crashes is logged and started again."""
    while True:
        try:
            await duty()
            return
        except Exception:
            log.exception("the %s crashed and is started again", name)
            await asyncio.sleep(0.1)


def run(settings: Settings, queue: str) -> None:
    """Run a worker in the foreground until it is asked to stop or stuck, and end the process.

    Ends with `os._exit` and without winding up the event loop: a thread whose handler does not
    return, or a coroutine that swallows its cancellation, would keep the process for ever.
    """
    exit_code = asyncio.new_event_loop().run_until_complete(Worker(settings, queue).run())
    logging.shutdown()
    os._exit(exit_code)

"""The worker process: its duties, which run beside each other.

`Poller` takes, `Executor` executes, `Settler` records, `Heartbeat` renews, `Scheduler` promotes.
This module joins them, starts them again when they fail, and stops them in good order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import time
from typing import Any

from redis.exceptions import RedisError

from dtq_reference import calls, handlers
from dtq_reference.calls import Call, Identity, Taken
from dtq_reference.executor import Executor
from dtq_reference.hands import Hands, Hold, log
from dtq_reference.heartbeat import Heartbeat
from dtq_reference.poller import Poller
from dtq_reference.scheduler import Scheduler
from dtq_reference.settings import Settings
from dtq_reference.settler import Settler

FAREWELL_LIMIT_S = 1.0
"""How long at least a stopping worker tries to give back what it never started, and to say
goodbye. What it leaves unsaid is cleared up when its leases have ended."""

RESTART_PAUSE_S = 0.1
"""How long a duty that failed is let alone."""


class Worker:
    """One worker process of one queue."""

    def __init__(self, settings: Settings, queue: str = "default") -> None:
        worker_id = settings.worker_id or f"worker-{secrets.token_hex(4)}"
        self.hands = Hands(settings, Identity(worker_id, secrets.token_hex(4)), queue)
        self.settler = Settler(self.hands)
        self.executor = Executor(self.hands, self.settler.add)
        self.heartbeat = Heartbeat(self.hands)

    async def run(self) -> int:
        """Work until asked to stop (SIGTERM or SIGINT), or until every slot is stuck, then drain.
        Returns the exit code. A second signal ends the process at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop)
        hello = loop.create_task(self.hands.register(again=False))
        stop = loop.create_task(self.hands.draining.wait())
        await asyncio.wait({hello, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not hello.done():  # without Redis nothing was taken that could be given back
            hello.cancel()
            await self._try(calls.goodbye(*self.hands.who), limit_s=FAREWELL_LIMIT_S)
            return self.hands.exit_code
        await hello
        duties = [loop.create_task(_supervise(duty)) for duty in (
            Poller(self.hands, self._begin), self.settler, self.heartbeat, Scheduler(self.hands))]
        log.info("worker %s is ready, concurrency %d", self.hands.identity.consumer,
                 self.hands.settings.worker_concurrency)
        await stop
        await self._stop(duties)
        return self.hands.exit_code

    async def _stop(self, duties: list[asyncio.Task[None]]) -> None:
        """Give back what never started, wait for what did as long as the limit allows, and say
        goodbye. Nothing of it waits for ever, even without Redis."""
        hands, limit_s = self.hands, self.hands.settings.drain_timeout_s
        deadline = time.monotonic() + limit_s
        for hold in [hold for hold in hands.holds.values() if not hold.started]:
            hands.drop(hold)
        started = [hold.taken for hold in hands.holds.values()]
        log.info("draining: %d started", len(started))
        if released := await self._try(calls.release(*hands.who, started),
                                       limit_s=max(FAREWELL_LIMIT_S, limit_s)):
            hands.count(calls.read_release(released))
        while hands.holds and (left_s := deadline - time.monotonic()) > 0:
            hands.changed.clear()
            await hands.change(left_s)
        if hands.holds:
            log.warning("drain limit reached with %d unfinished", len(hands.holds))
        for duty in duties:
            duty.cancel()
        await handlers.hooks_done(max(0.0, deadline - time.monotonic()))
        await self._try(calls.goodbye(*hands.who), limit_s=FAREWELL_LIMIT_S)
        log.info("worker %s has stopped", hands.identity.consumer)

    async def _try(self, call: Call, *, limit_s: float) -> Any:
        """The reply to a call, sent until it is answered or the time is up; then None.
        `asyncio.wait` keeps to its limit whatever becomes of a cancellation inside the client."""
        sending = asyncio.ensure_future(self.hands.transport.call_again(call))
        await asyncio.wait({sending}, timeout=limit_s)
        if not sending.done():
            sending.cancel()
            log.warning("%s: no answer within %g s", call.script, limit_s)
        elif (error := sending.exception()) is not None:
            log.warning("%s: %s", call.script, error)
        else:
            return sending.result()
        return None

    def _begin(self, tasks: list[Taken], lease_until: float) -> None:
        """Start executing what was taken. The heartbeat is told first: a handler may hold up
        the loop from its first line."""
        holds = [Hold(taken, lease_until) for taken in tasks]
        self.hands.holds |= {hold.taken.hold: hold for hold in holds}
        self.heartbeat.tell()
        for hold in holds:
            waited_s = max(0.0, time.time() - hold.taken.created_at / 1000)
            self.hands.metrics.started(hold.taken, waited_s=waited_s)
            self.executor.start(hold)

    def _asked_to_stop(self) -> None:
        if self.hands.draining.is_set():
            log.warning("asked to stop a second time: ending at once")
            os._exit(1)
        self.hands.drain()


async def _supervise(duty: Poller | Settler | Heartbeat | Scheduler) -> None:
    """Run a duty to its end; one that fails is logged and started again."""
    name = type(duty).__name__.lower()
    while True:
        try:
            return await duty.run()
        except RedisError as error:
            log.warning("the %s is started again: %s", name, error)
        except Exception:
            log.exception("the %s crashed and is started again", name)
        await asyncio.sleep(RESTART_PAUSE_S)


def run(settings: Settings, queue: str) -> None:
    """Run a worker in the foreground until it is asked to stop or stuck, and end the process.

    Ends with `os._exit` and without winding up the event loop: a thread whose handler does not
    return, or a coroutine that swallows its cancellation, would keep the process for ever.
    """
    exit_code = asyncio.new_event_loop().run_until_complete(Worker(settings, queue).run())
    logging.shutdown()
    os._exit(exit_code)

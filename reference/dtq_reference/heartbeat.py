"""Keep the leases of what the process has in hand, by a small process that no handler holds up.

This side tells `heartbeat_process` what is in hand, before a handler starts, and hears from it
what was renewed. It is started again when it ends, and ends with the worker.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

import msgspec

from dtq_reference import calls
from dtq_reference.executor import Executor
from dtq_reference.heartbeat_process import Beat, Orders, Told
from dtq_reference.poller import Register
from dtq_reference.scripts import SCRIPTS
from dtq_reference.settings import HEARTBEAT_JITTER
from dtq_reference.transport import address_of

if TYPE_CHECKING:
    from dtq_reference.worker import Hands, Hold

log = logging.getLogger("dtq.heartbeat")

CANCEL_REQUESTED = 2
"""What `renew.lua` says of a hold whose cancellation is asked for."""


class Heartbeat:
    """Beats at its interval, also while the worker drains or its loop stands still."""

    def __init__(self, hands: Hands, executor: Executor, *, register: Register) -> None:
        self._hands = hands
        self._executor = executor
        self._register = register
        self._stdin: asyncio.StreamWriter | None = None
        self._told: dict[int, list[Hold]] = {}
        self._number = 0

    async def run(self) -> None:
        """Beat for ever; raises when the process of its own has ended."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dtq_reference.heartbeat_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._stdin.write(msgspec.json.encode(self._orders()) + b"\n")
        self.tell()
        try:
            while line := await process.stdout.readline():
                await self._hear(msgspec.json.decode(line, type=Beat))
                self.tell()
        finally:
            self._stdin = None
            self._hands.is_beating = False
            process.stdin.close()
        raise RuntimeError(f"the heartbeat's process ended with code {await process.wait()}")

    def tell(self) -> None:
        """Say what is in hand. Done before a handler starts, which may hold up this loop."""
        if self._stdin is None:
            return
        holds = [hold for hold in self._hands.holds.values() if not hold.lost]
        self._number += 1
        self._told[self._number] = holds
        self._stdin.write(msgspec.json.encode(Told(
            self._number, [hold.taken.hold for hold in holds],
            calls.flat(self._hands.about(self._status())))) + b"\n")

    def _orders(self) -> Orders:
        hands, script = self._hands, SCRIPTS["renew"]
        address = address_of(hands.settings.redis_url, hands.keys.prefix)
        keys, argument = calls.renew_parts(hands.keys, hands.settings, hands.identity, hands.queue)
        return Orders(address, script.sha, script.source, keys, argument,
                      hands.settings.heartbeat_interval_s, HEARTBEAT_JITTER,
                      timeout_s=hands.settings.visibility_timeout_s / 3)

    async def _hear(self, beat: Beat) -> None:
        hands = self._hands
        if not hands.is_beating:
            hands.is_beating = True
            hands.changed.set()
        holds = self._told.get(beat.number, [])
        self._told = {number: told for number, told in self._told.items()
                      if number >= beat.number}
        hands.metrics.redis_operation("renew", _result_of(beat))
        if beat.problem:
            log.warning("renew: %s", beat.problem)
            if "NOGROUP" in beat.problem:
                await self._register(again=True)
            return
        for hold, held in zip(holds, beat.held, strict=False):
            if held:
                hold.lease_until = beat.sent + hands.settings.visibility_timeout_s
                if held == CANCEL_REQUESTED:
                    self._executor.cancel(hold.taken)
            elif hold.taken.hold in hands.holds:
                hold.lost = True
                log.warning("task %s: attempt %d is no longer ours", hold.taken.task_id,
                            hold.taken.attempt)
        if hands.draining.is_set():
            return
        if beat.state == "absent":
            await self._register(again=True)
        elif beat.state != "ours":
            log.warning("the worker's hash says %s; draining", beat.state)
            hands.draining.set()

    def _status(self) -> str:
        hands = self._hands
        if hands.draining.is_set():
            return "draining"
        if self._executor.all_overdue:
            return "overdue"
        return "busy" if hands.holds else "ready"


def _result_of(beat: Beat) -> str:
    if not beat.problem:
        return "ok"
    return "error" if beat.problem.startswith("ScriptError") else "unanswered"

"""Keep the leases of what the process has in hand, by a small process that no handler holds up.

This side tells `heartbeat_process` what is in hand, before a handler starts, and hears from it
what was renewed. It is started again when it ends, and ends with the worker.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from dtq_reference import calls
from dtq_reference.calls import HoldName
from dtq_reference.cluster import address_of
from dtq_reference.hands import Hands, log
from dtq_reference.heartbeat_process import Beat, Orders, Told
from dtq_reference.scripts import SCRIPTS
from dtq_reference.settings import HEARTBEAT_JITTER

CANCEL_REQUESTED = 2
"""What `renew.lua` says of a hold whose cancellation is asked for."""

LINE_LIMIT = 1_048_576
"""How long a line about all that a process can have in hand may be."""


class Heartbeat:
    """Beats at its interval, also while the worker drains or its loop stands still."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._stdin: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        """Beat for ever; raises when the process of its own has ended."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dtq_reference.heartbeat_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT)
        assert process.stdin is not None and process.stdout is not None
        self._stdin = process.stdin
        settings, script = self._hands.settings, SCRIPTS["renew"]
        self._say(Orders(
            address_of(settings.redis_url, settings.key_prefix), script.sha, script.source,
            calls.renew(*self._hands.who, [], {}).keys, settings.heartbeat_interval_s,
            HEARTBEAT_JITTER, timeout_s=settings.visibility_timeout_s / 3))
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
        hands = self._hands
        self._say(Told(calls.renewing(*hands.who[:3], hands.about()), calls.packed_list(
            [hold.packed for hold in hands.holds.values() if not hold.lost])))

    def _say(self, line: Orders | Told) -> None:
        if self._stdin is not None:
            self._stdin.write(msgspec.json.encode(line) + b"\n")

    async def _hear(self, beat: Beat) -> None:
        hands = self._hands
        hands.is_beating = True
        hands.changed.set()
        result = "ok"
        if beat.problem:
            log.warning("renew: %s", beat.problem)
            result = "error" if beat.problem.startswith("ScriptError") else "unanswered"
        hands.metrics.redis_operation("renew", result)
        for name, held in zip(msgspec.msgpack.decode(beat.holds, type=list[HoldName]), beat.held,
                              strict=False):
            if (hold := hands.holds.get(name)) is None:
                continue  # it was settled meanwhile
            if held:
                hold.lease_until = beat.sent + hands.settings.visibility_timeout_s
            if held == CANCEL_REQUESTED:
                hold.cancel()
            elif not held:
                hold.lost = True
                log.warning("task %s: attempt %d is no longer ours", hold.taken.task_id,
                            hold.taken.attempt)
        if beat.state == "absent" or "NOGROUP" in beat.problem:
            await hands.register(again=True)
        elif beat.state not in ("ours", ""):
            log.warning("the worker's hash says %s; draining", beat.state)
            hands.drain()

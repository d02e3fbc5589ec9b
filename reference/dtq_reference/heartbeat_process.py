"""The heartbeat itself: a small process beside the worker, which no handler can hold up.

Comes in, on stdin: one JSON line that says how to renew, then a line whenever the worker's hands
change. Goes out, on stdout: a JSON line for each beat. When stdin ends, the worker is gone, and so
is this process: it never renews for the dead. A stopped worker is renewed for, but no attempt
longer than its time limit and one lease (`renew.lua`).

It imports neither redis-py nor asyncio: a third of their memory is enough for one script.
"""

from __future__ import annotations

import os
import random
import select
import signal
import time
from typing import Any

import hiredis
import msgspec

from dtq_reference.cluster import finder
from dtq_reference.wire import Address, Connection, ScriptError


class Orders(msgspec.Struct, frozen=True):
    """How to renew: where, by which script, about what, how often (give or take the share
    `jitter`), and how long to wait for an answer."""

    address: Address
    sha: str
    source: str
    keys: list[str]
    argument: dict[str, Any]
    interval_s: float
    jitter: float
    timeout_s: float


class Told(msgspec.Struct, frozen=True):
    """What the worker has in hand, and what its hash is to say; `number` counts these lines."""

    number: int = 0
    holds: list[tuple[int, str, int, str]] = []
    about: list[str | int] = []


class Beat(msgspec.Struct, frozen=True):
    """One beat: which line's holds were renewed, when that was sent (CLOCK_MONOTONIC), and what
    came of it: `state` and `held` as `renew.lua` answers, or the `problem` that hid it."""

    number: int
    sent: float
    state: str = ""
    held: list[int] = []
    problem: str = ""


def beat(connection: Connection, orders: Orders, told: Told) -> Beat:
    """Renew once."""
    sent = time.monotonic()
    argument = msgspec.msgpack.encode({**orders.argument, "holds": told.holds,
                                       "about": told.about})
    call = (len(orders.keys), *orders.keys, argument)
    try:
        try:
            state, held = connection.call("EVALSHA", orders.sha, *call)
        except ScriptError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise
            state, held = connection.call("EVAL", orders.source, *call)
    except (OSError, ScriptError, hiredis.HiredisError) as error:
        return Beat(told.number, sent, problem=f"{type(error).__name__}: {error}")
    return Beat(told.number, sent, state.decode(), held)


class Pipes:
    """The two pipes to the worker. Neither is ever waited for: not to hear, not to be heard."""

    def __init__(self) -> None:
        os.set_blocking(1, False)
        self._heard = b""
        self._unsent = b""

    def hear(self, limit_s: float) -> list[bytes]:
        """The whole lines that arrive within the time; raises EOFError when the worker is gone."""
        ready, _, _ = select.select([0], [], [], max(0.0, limit_s))
        if not ready:
            return []
        data = os.read(0, 1_048_576)
        if not data:
            raise EOFError
        *lines, self._heard = (self._heard + data).split(b"\n")
        return lines

    def say(self, line: bytes) -> None:
        """Write a line. While the worker does not read, only the unfinished one is kept."""
        self._unsent = self._unsent or line + b"\n"
        try:
            self._unsent = self._unsent[os.write(1, self._unsent):]
        except BlockingIOError:
            return


def main() -> None:
    """Beat until the worker is gone. Signals that ask the worker to stop are its own business."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    pipes = Pipes()
    lines: list[bytes] = []
    while not lines:
        lines = pipes.hear(60)
    orders = msgspec.json.decode(lines.pop(0), type=Orders)
    connection = Connection(orders.address, orders.timeout_s, finder(orders.address))
    told = Told()
    due = time.monotonic()  # at once, since the worker takes nothing before it hears a beat
    while True:
        while True:
            if lines:
                told = msgspec.json.decode(lines[-1], type=Told)
            left_s = due - time.monotonic()
            lines = pipes.hear(left_s)
            if left_s <= 0 and not lines:
                break
        pipes.say(msgspec.json.encode(beat(connection, orders, told)))
        due = time.monotonic() + orders.interval_s * random.uniform(1 - orders.jitter,
                                                                    1 + orders.jitter)


if __name__ == "__main__":
    try:
        main()
    except (EOFError, BrokenPipeError):
        os._exit(0)

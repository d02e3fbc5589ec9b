"""The heartbeat itself: a small process beside the worker, which no handler can hold up.

Comes in, on stdin: one JSON line that says how to renew, then a line whenever the worker's hands
change. Goes out, on stdout: a JSON line for each beat. When stdin ends, the worker is gone, and so
is this process: it never renews for the dead. A stopped worker is renewed for, but no attempt
longer than its time limit and one lease (`renew.lua`).

It imports what `wire.py` imports, and little more: a third of what the worker itself takes.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import time
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import NamedTuple

from dtq_reference.wire import Address, Connection, ScriptError


class Orders(NamedTuple):
    """How to renew: where, by which script, on which keys, how often (give or take the share
    `jitter`), and how long to wait for an answer."""

    address: Address
    sha: str
    source: str
    keys: Sequence[str]
    interval_s: float
    jitter: float
    timeout_s: float


class Told(NamedTuple):
    """The script's argument, in two parts: the second is the packed list of what is in hand."""

    argument: bytes
    holds: bytes


class Beat(NamedTuple):
    """One beat: which holds were renewed, when that was sent (CLOCK_MONOTONIC), and what came of
    it: `state` and `held` as `renew.lua` answers, or the `problem` that hid it."""

    holds: bytes
    sent: float
    state: str = ""
    held: Sequence[int] = ()
    problem: str = ""


def beat(connection: Connection, orders: Orders, told: Told) -> Beat:
    """Renew once."""
    sent = time.monotonic()
    try:
        state, held = connection.run(orders.sha, orders.source, orders.keys,
                                      told.argument + told.holds)
    except (OSError, ScriptError) as error:
        return Beat(told.holds, sent, problem=f"{type(error).__name__}: {error}")
    return Beat(told.holds, sent, state.decode(), held)


def as_text(raw: bytes) -> str:
    """Bytes in JSON, as msgspec reads and writes them too."""
    return b2a_base64(raw, newline=False).decode()


class Pipes:
    """The two pipes to the worker. Neither is ever waited for: not to hear, not to be heard."""

    def __init__(self) -> None:
        os.set_blocking(1, False)
        self._heard = b""
        self._unsent = b""

    def hear(self, limit_s: float) -> list[bytes]:
        """The whole lines that arrive within the time; raises EOFError when the worker is gone."""
        if not select.select([0], [], [], max(0.0, limit_s))[0]:
            return []
        data = os.read(0, 1_048_576)
        if not data:
            raise EOFError
        *lines, self._heard = (self._heard + data).split(b"\n")
        return lines

    def say(self, line: str) -> None:
        """Write a line. While the worker does not read, only the unfinished one is kept."""
        self._unsent = self._unsent or line.encode() + b"\n"
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
    heard: list[bytes] = []
    while len(lines) < 2:
        lines += pipes.hear(60)
    orders = Orders(*json.loads(lines[0]))
    connection = Connection(Address(*orders.address), orders.timeout_s)
    while True:  # at once, since the worker takes nothing before it hears a beat
        told = Told(*map(a2b_base64, json.loads(lines[-1])))
        pipes.say(json.dumps(beat(connection, orders, told), default=as_text))
        due = time.monotonic() + orders.interval_s * random.uniform(1 - orders.jitter,
                                                                    1 + orders.jitter)
        while (left_s := due - time.monotonic()) > 0 or heard:
            heard = pipes.hear(left_s)
            lines = heard or lines


if __name__ == "__main__":
    try:
        main()
    except (EOFError, BrokenPipeError):
        os._exit(0)

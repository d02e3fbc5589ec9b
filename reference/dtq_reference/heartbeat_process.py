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
import socket
import time
from dataclasses import dataclass
from typing import Any

import hiredis
import msgspec

from dtq_reference.cluster import ASK_TIMEOUT_S, Node, Slot

ELSEWHERE = ("MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN")
"""Refusals after which another server may be the one to ask."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server is: a host and port, or the path of a socket. In a cluster, where some
    `nodes` of it are, and the `slot` whose master is the server."""

    host: str = "localhost"
    port: int = 6379
    nodes: list[Node] = []
    slot: int = -1
    path: str = ""
    tls: bool = False
    username: str = ""
    password: str = ""
    db: int = 0


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


class ScriptError(Exception):
    """The server's own error reply."""


@dataclass
class Connection:
    """One connection to the server, opened when needed; after any trouble it is opened anew."""

    address: Address
    timeout_s: float
    _socket: socket.socket | None = None
    _reader: Any = None
    _slot: Slot | None = None

    def __post_init__(self) -> None:
        if self.address.nodes:
            self._slot = Slot(self.address.slot, self.address.nodes)

    def call(self, *command: Any) -> Any:
        """Send one command and return its reply. Raises OSError or `ScriptError`."""
        try:
            if self._socket is None:
                if self._slot is not None:
                    self._find(self._slot)
                self._open()
            return self._ask(command)
        except OSError:
            self.close()
            raise
        except ScriptError as error:
            if str(error).startswith(ELSEWHERE):
                self.close()
            raise

    def close(self) -> None:
        """Forget the connection, and with it any reply that was not read."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _find(self, slot: Slot) -> None:
        """Ask the nodes that are known for the slot's master, and make it the address."""
        problem: Exception = ConnectionError("nobody has it")
        for host, port in slot.nodes():
            asked = Connection(msgspec.structs.replace(self.address, host=host, port=port,
                                                       nodes=[]), ASK_TIMEOUT_S)
            try:
                if master := slot.master((host, port), asked.call("CLUSTER", "SLOTS")):
                    self.address = msgspec.structs.replace(self.address, host=master[0],
                                                           port=master[1])
                    return
            except (OSError, ScriptError) as error:
                problem = error
            finally:
                asked.close()
        raise ConnectionError(f"no node tells the master of slot {slot.number}: {problem}")

    def _open(self) -> None:
        address = self.address
        if address.path:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(self.timeout_s)
            self._socket.connect(address.path)
        else:
            self._socket = socket.create_connection((address.host, address.port), self.timeout_s)
        if address.tls:
            import ssl  # megabytes that only an encrypted connection needs

            self._socket = ssl.create_default_context().wrap_socket(
                self._socket, server_hostname=address.host)
        self._reader = hiredis.Reader(replyError=ScriptError)
        if address.password:
            name = (address.username,) if address.username else ()
            self._ask(("AUTH", *name, address.password))
        if address.db:
            self._ask(("SELECT", address.db))

    def _ask(self, command: tuple[Any, ...]) -> Any:
        assert self._socket is not None
        self._socket.sendall(hiredis.pack_command(command))
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._reader.feed(data)
        if isinstance(reply, ScriptError):
            raise reply
        return reply


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
    connection = Connection(orders.address, orders.timeout_s)
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

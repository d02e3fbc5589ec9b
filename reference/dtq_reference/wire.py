"""Speak to Redis with a socket and hiredis alone: for the synchronous client, for the heartbeat's
process, and to ask the nodes of a cluster. What it imports takes a fifth of what redis-py and
asyncio do.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

import hiredis

Node = tuple[str, int]

ASK_TIMEOUT_S = 1.0
"""How long a node may take to say who has the slot, before another one is asked."""

ANEW = ("MOVED", "READONLY", "CLUSTERDOWN", "WRONGPASS", "NOAUTH")
"""Refusals after which another server may be the one to ask, or the same one with another word."""


class Address(NamedTuple):
    """Where the server is: a host and port, or the path of a socket. In a cluster, where some
    `nodes` of it are, and the `slot` whose master is the server."""

    host: str = "localhost"
    port: int = 6379
    nodes: Sequence[Node] = ()
    slot: int | None = None
    path: str = ""
    tls: bool = False
    username: str = ""
    password: str = ""
    db: int = 0

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}"


class ScriptError(Exception):
    """The server's own error reply."""


class NotSent(OSError):
    """There was no connection, so nothing was sent."""


class Connection:
    """One connection to the server, opened when needed; after any trouble it is opened anew, in a
    cluster to the master that the slot has then."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._slot = Slot(address)
        self._socket: Any = None

    def call(self, *command: Any) -> Any:
        """Send one command and return its reply. Raises `NotSent`, OSError when it is not known
        whether it was done, or `ScriptError`."""
        try:
            if self._socket is None:
                self._open()
        except OSError as error:
            self.close()
            raise NotSent(f"{self._address}: {error}") from error
        try:
            return self._ask(*command)
        except (OSError, ScriptError) as error:
            if isinstance(error, OSError) or str(error).startswith(ANEW):
                self.close()
            raise

    def run(self, sha: str, source: str, keys: Sequence[str], argument: bytes) -> Any:
        """Run a script, which the server may know by its SHA-1, and return its reply."""
        try:
            return self.call("EVALSHA", sha, len(keys), *keys, argument)
        except ScriptError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise
            return self.call("EVAL", source, len(keys), *keys, argument)

    def close(self) -> None:
        """Forget the connection, and with it any reply that was not read."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _open(self) -> None:
        address, (host, port) = self._address, self._slot.find()
        if address.path:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(self._timeout_s)
            self._socket.connect(address.path)
        else:
            self._socket = socket.create_connection((host, port), self._timeout_s)
        if address.tls:
            import ssl  # megabytes that only an encrypted connection needs

            self._socket = ssl.create_default_context().wrap_socket(
                self._socket, server_hostname=host)
        self._reader = hiredis.Reader(replyError=ScriptError)
        if address.password:
            self._ask("AUTH", *filter(None, (address.username, address.password)))
        if address.db:
            self._ask("SELECT", address.db)

    def _ask(self, *command: Any) -> Any:
        self._socket.sendall(hiredis.pack_command(command))
        try:
            while (reply := self._reader.gets()) is False:
                data = self._socket.recv(65_536)
                if not data:
                    raise ConnectionError("the server closed the connection")
                self._reader.feed(data)
        except hiredis.HiredisError as error:
            raise ConnectionError(f"what answers is no Redis: {error}") from error
        if isinstance(reply, ScriptError):
            raise reply
        return reply


class Slot:
    """The nodes of a cluster that are known, and what they say of one slot. All keys of an
    installation are in it, so that its master is the server."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._nodes = self.seeds = [(host, port) for host, port in address.nodes]

    def find(self) -> Node:
        """Ask the nodes, one after the other, for the slot's master; one that did not help is asked
        last from then on. Raises ConnectionError when none does. Without a cluster the server is
        where it always is."""
        if not self.seeds:
            return self._address.host, self._address.port
        problem: Exception | str = "nobody has it"
        for node in list(self._nodes):
            asked = self._address._replace(host=node[0], port=node[1], nodes=())
            connection = Connection(asked, ASK_TIMEOUT_S)
            try:
                if master := self.master(node, connection.call("CLUSTER", "SLOTS")):
                    return master
            except (OSError, ScriptError) as error:
                problem = error
            finally:
                connection.close()
            self._nodes = [*(other for other in self._nodes if other != node), node]
        raise ConnectionError(f"no node tells the master of slot {self._address.slot}: {problem}")

    def master(self, asked: Node, reply: Any) -> Node | None:
        """The slot's master by the reply to CLUSTER SLOTS, all nodes of which are remembered.

        Each range is first slot, last slot, master, replicas; a node is its host, port and more. A
        host that is empty is the one that was asked. None when nobody has the slot.
        """
        ranges = [(first, last, [((node[0] or b"").decode() or asked[0], node[1])
                                 for node in nodes]) for first, last, *nodes in reply]
        told = [node for _, _, nodes in ranges for node in nodes]
        self._nodes = list(dict.fromkeys([asked, *told, *self.seeds]))
        return next((nodes[0] for first, last, nodes in ranges
                     if first <= self._address.slot <= last), None)

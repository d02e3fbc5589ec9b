"""Speak to Redis with a socket and hiredis alone: for the heartbeat's process, and to ask the nodes
of a cluster. It imports neither redis-py nor asyncio, which saves two thirds of the memory."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hiredis
import msgspec

Node = tuple[str, int]

ELSEWHERE = ("MOVED", "READONLY", "CLUSTERDOWN")
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


class ScriptError(Exception):
    """The server's own error reply."""


@dataclass
class Connection:
    """One connection to the server, opened when needed; after any trouble it is opened anew.

    `find` tells host and port each time that it is opened, where these may change.
    """

    address: Address
    timeout_s: float
    find: Callable[[], Node] | None = None
    _socket: socket.socket | None = None
    _reader: Any = None

    def call(self, *command: Any) -> Any:
        """Send one command and return its reply. Raises OSError or `ScriptError`."""
        try:
            if self._socket is None:
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

    def _open(self) -> None:
        address = self.address
        host, port = self.find() if self.find else (address.host, address.port)
        if address.path:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(self.timeout_s)
            self._socket.connect(address.path)
        else:
            self._socket = socket.create_connection((host, port), self.timeout_s)
        if address.tls:
            import ssl  # megabytes that only an encrypted connection needs

            self._socket = ssl.create_default_context().wrap_socket(
                self._socket, server_hostname=host)
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

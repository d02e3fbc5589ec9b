"""A relay before a server, for the tests: connections through it can fall silent, and stay so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """Listens on a port of its own and passes everything on, until it is told not to.

    What has fallen silent stays open and says nothing more, also when the relay is whole again:
    neither end is told, as when a cable is pulled. Connections that are made after that live.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._silent: frozenset[str] = frozenset()
        self._links: list[_Link] = []

    def silence(self, *directions: str) -> None:
        """Pass on nothing more: `requests`, `replies`, or both when none is named."""
        self._silent = frozenset(directions or ("requests", "replies"))
        for link in self._links:
            link.silent |= self._silent

    def heal(self) -> None:
        """Let new connections live; the old ones stay as they are."""
        self._silent = frozenset()

    def close(self) -> None:
        """End all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # a mere close would not wake who accepts
        self._listener.close()
        for link in self._links:
            link.close()

    def serve(self) -> None:
        """Accept until it is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            link = _Link(client, server, self._silent)
            self._links.append(link)
            link.start()


class _Link:
    def __init__(self, client: socket.socket, server: socket.socket,
                 silent: frozenset[str]) -> None:
        self._client, self._server, self.silent = client, server, silent

    def start(self) -> None:
        for way in (("requests", self._client, self._server),
                    ("replies", self._server, self._client)):
            threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if direction not in self.silent:
                    sink.sendall(data)
        if not self.silent:
            self.close()

    def close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    """A relay to this port of loopback; it ends with the block."""
    relay = Relay(port)
    threading.Thread(target=relay.serve, daemon=True).start()
    try:
        yield relay
    finally:
        relay.close()

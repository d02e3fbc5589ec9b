"""The judge's own WebSocket client, against a server that it did not write."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator

import pytest
from dtq_conformance.websocket import WebSocket, WebSocketError
from websockets.sync.server import ServerConnection, serve

HOST = "127.0.0.1"
LONG = "x" * 70_000


@contextlib.contextmanager
def served(*texts: str, code: int | None = None) -> Iterator[int]:
    """A server that sends these texts to each client and ends with this code, or waits."""
    def handle(connection: ServerConnection) -> None:
        for text in texts:
            connection.ping()
            connection.send(text)
        if code is not None:
            connection.close(code)
        for _ in connection:
            pass

    with serve(handle, HOST, 0) as server:
        port: int = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield port
        server.shutdown()
        thread.join()


def test_texts_of_every_length_are_read_and_pings_are_answered() -> None:
    sent = ["short", "y" * 300, LONG, ""]
    with served(*sent) as port, contextlib.closing(WebSocket(HOST, port, "/")) as client:
        assert [client.text(limit_s=5.0) for _ in sent] == sent
        assert client.closed is None


def test_without_a_text_the_limit_ends_the_wait() -> None:
    with served("one") as port, contextlib.closing(WebSocket(HOST, port, "/")) as client:
        assert [client.text(limit_s=5.0), client.text(limit_s=0.05)] == ["one", None]
        assert client.closed is None


def test_the_servers_code_is_remembered() -> None:
    with served("one", code=1013) as port, \
            contextlib.closing(WebSocket(HOST, port, "/", buffer_bytes=4096)) as client:
        assert [client.text(limit_s=5.0), client.text(limit_s=5.0)] == ["one", None]
        assert client.closed == 1013


def test_a_server_that_does_not_shake_hands_is_named() -> None:
    with http.server.HTTPServer((HOST, 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(WebSocketError, match=r"/events answered HTTP/1\.0 501"):
            WebSocket(HOST, server.server_port, "/events")
        thread.join()

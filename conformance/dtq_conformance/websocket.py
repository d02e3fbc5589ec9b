"""A WebSocket client of its own, as far as the judge needs one: it reads texts, or does not read.

Comes in: host, port and path. Goes out: texts one by one, and the code with which the server ended
the connection. It asks for no compression, answers pings, and can be given a small buffer, so that
a client that does not read is soon a slow one. From RFC 6455.
"""

from __future__ import annotations

import base64
import os
import socket
import struct

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
LIMIT_S = 10.0
MASK = b"\x00\x00\x00\x00"


class WebSocketError(Exception):
    """The server did not shake hands."""


class WebSocket:
    """One connection. `closed` is the server's close code, 1006 if it broke, None while it is up.
    """

    def __init__(self, host: str, port: int, path: str, *, buffer_bytes: int | None = None) -> None:
        self.closed: int | None = None
        self._socket = socket.socket()
        if buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self._socket.settimeout(LIMIT_S)
        self._socket.connect((host, port))
        self._read = bytearray()
        self._shake_hands(host, port, path)

    def _shake_hands(self, host: str, port: int, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, rest = bytes(self._read).partition(b"\r\n\r\n")
        self._read = bytearray(rest)
        if b" 101 " not in head.splitlines()[0] + b" ":
            raise WebSocketError(f"{path} answered {head.splitlines()[0].decode(errors='replace')}")

    def text(self, *, limit_s: float) -> str | None:
        """The next text; None if none came within the limit, or none will come any more."""
        self._socket.settimeout(limit_s)
        while self.closed is None:
            try:
                code, content = self._frame()
            except TimeoutError:
                return None
            except OSError:
                self.closed = 1006
            else:
                if code == TEXT:
                    return content.decode()
                self._answer(code, content)
        return None

    def _answer(self, code: int, content: bytes) -> None:
        if code == CLOSE:
            self.closed = struct.unpack("!H", content[:2])[0] if len(content) >= 2 else 1005
        elif code == PING:
            self._socket.sendall(bytes([0x80 | PONG, 0x80 | len(content)]) + MASK + content)

    def _frame(self) -> tuple[int, bytes]:
        """The next frame, once it is whole. A timeout leaves what has come for the next try."""
        start, length = 2, self._at(1) & 0x7F
        if length >= 126:
            start = 4 if length == 126 else 10
            self._at(start - 1)
            length = int.from_bytes(self._read[2:start], "big")
        if length:
            self._at(start + length - 1)
        code = self._read[0] & 0x0F
        content = bytes(self._read[start:start + length])
        del self._read[:start + length]
        return code, content

    def _at(self, place: int) -> int:
        while len(self._read) <= place:
            self._more()
        return self._read[place]

    def _more(self) -> None:
        came = self._socket.recv(65_536)
        if not came:
            raise ConnectionError("the server has gone")
        self._read += came

    def close(self) -> None:
        """Go away."""
        self._socket.close()

"""Servers that take HTTP requests and do nothing with them: what ingest is measured beside.

`uvicorn`: the server of this engine's API, with an application that reads the body and answers.
`blind`: a bare socket that answers whatever comes, by which the client's own limit is known.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

ANSWER = b'{"task_id":"00000000000000000000000000000000","status":"queued"}'
BLIND = (b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
         % len(ANSWER)) + ANSWER
HEAD = {"type": "http.response.start", "status": 202,
        "headers": [(b"content-type", b"application/json"),
                    (b"content-length", str(len(ANSWER)).encode())]}


async def empty(scope: Any, receive: Any, send: Any) -> None:
    """The smallest application."""
    while (await receive()).get("more_body"):
        pass
    await send(HEAD)
    await send({"type": "http.response.body", "body": ANSWER})


class Blind(asyncio.Protocol):
    """Answers each piece that comes: the client sends a request in one piece, and one at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(BLIND)


async def serve_blindly(listening: socket.socket) -> None:
    server = await asyncio.get_running_loop().create_server(Blind, sock=listening)
    await server.serve_forever()


def main(kind: str) -> None:
    """Serve until killed."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the API does it
    print(f"serving http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    if kind == "blind":
        asyncio.run(serve_blindly(listening))
    import uvicorn

    uvicorn.Server(uvicorn.Config(empty, access_log=False, log_level="warning",
                                  lifespan="off")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])

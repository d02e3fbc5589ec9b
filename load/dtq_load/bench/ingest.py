"""How many tasks one API process takes over HTTP, one by one and in batches.

Comes in: a stand. Goes out: tasks per second of this engine's API; of the same server (uvicorn)
with a handler that reads the body and does nothing; and the requests per second that the client
itself manages with a server that does not even look at them.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
from dtq_conformance.lab import LabProcess
from dtq_conformance.waiting import WaitedTooLong, wait_for

from dtq_load.bench.peers import dtq
from dtq_load.bench.stand import BenchError, Stand, end, now_s, require_alive

HOST = "127.0.0.1"
CONNECTIONS = 32
BATCH = 100
START_LIMIT_S = 60.0
TASK = {"task_type": "nothing", "payload": {"number": 1}}
EMPTY = [sys.executable, "-P", "-m", "dtq_load.peer_apps.empty_server"]
API = [sys.executable, "-P", "-m", "dtq_reference.cli", "api", "run"]


@dataclass(frozen=True)
class Request:
    """A request that is sent again and again, and how many tasks it submits."""

    path: str
    body: bytes
    tasks: int

    def to(self, port: int) -> bytes:
        return (f"POST {self.path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n"
                "Content-Type: application/json\r\n"
                f"Content-Length: {len(self.body)}\r\n\r\n").encode() + self.body


ONE = Request("/api/v1/tasks", msgspec.json.encode(TASK), 1)
MANY = Request("/api/v1/tasks/batch", msgspec.json.encode({"tasks": [TASK] * BATCH}), BATCH)


def measure(stand: Stand, *, tasks: int) -> dict[str, float]:
    """The figures of one round."""
    stand.clear()
    ones, batches = max(CONNECTIONS, tasks // 5), max(CONNECTIONS, tasks // BATCH)
    found = {}
    environment = {**dtq.environment(stand.lab.broker.url), "DTQ_LOG_LEVEL": "INFO",
                   "DTQ_API_HOST": "127.0.0.1", "DTQ_API_PORT": "0"}
    with _serving(stand, "api", API, environment) as port:
        found["ingest_one_by_one_per_s"] = _rate(port, ONE, ones)
        found["ingest_batch_per_s"] = _rate(port, MANY, batches)
        if (waiting := dtq.left(stand.redis, 0)) != ones + batches * BATCH:
            raise BenchError(f"Over HTTP {ones + batches * BATCH:,} tasks were submitted, and "
                             f"{waiting:,} wait.")
    with _serving(stand, "empty", [*EMPTY, "uvicorn"], {}) as port:
        found["empty_one_by_one_per_s"] = _rate(port, ONE, ones)
        found["empty_batch_per_s"] = _rate(port, MANY, batches)
    with _serving(stand, "blind", [*EMPTY, "blind"], {}) as port:
        found["client_limit_per_s"] = _rate(port, ONE, ones)
    return found


@contextlib.contextmanager
def _serving(stand: Stand, name: str, command: list[str],
             environment: dict[str, str]) -> Iterator[int]:
    """Within, this server answers at the port."""
    server = stand.launch(name, command, environment)

    def port() -> int | None:
        require_alive([server])
        told = re.findall(r"serving http://127\.0\.0\.1:(\d+)", server.log.read_text())
        with contextlib.suppress(OSError):
            if told:
                socket.create_connection((HOST, int(told[-1])), timeout=5).close()
                return int(told[-1])
        return None

    try:
        yield _await(port, server)
    finally:
        end([server])


def _await(port: Callable[[], int | None], server: LabProcess) -> int:
    try:
        return wait_for(port, reason=f"{server.name} to serve", limit_s=START_LIMIT_S)
    except WaitedTooLong as error:
        raise BenchError(f"{error}; see {server.log}.") from error


def _rate(port: int, request: Request, count: int) -> float:
    """Tasks per second, when so many of these requests are sent over several connections."""
    begun = now_s()
    asyncio.run(_send(port, request.to(port), count))
    return count * request.tasks / (now_s() - begun)


async def _send(port: int, request: bytes, count: int) -> None:
    loop = asyncio.get_running_loop()
    senders = [Sender(request, count // CONNECTIONS + (number < count % CONNECTIONS),
                      loop.create_future()) for number in range(CONNECTIONS)]
    await asyncio.gather(*(loop.create_connection(sender.itself, HOST, port)
                           for sender in senders))
    await asyncio.gather(*(sender.done for sender in senders))


class Sender(asyncio.Protocol):
    """One connection: the next request goes out when the answer to the last is in."""

    def __init__(self, request: bytes, count: int, done: asyncio.Future[None]) -> None:
        self._request, self._left, self.done = request, count, done
        self._answer = b""

    def itself(self) -> Sender:
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, mark, body = self._answer.partition(b"\r\n\r\n")
        if not mark or len(body) < _length(head):
            return
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            self._end(BenchError(f"A request was answered with {self._answer[:500]!r}."))
            return
        self._answer = b""
        self._left -= 1
        self._next()

    def connection_lost(self, _: Exception | None) -> None:
        self._end(BenchError("The server closed a connection."))

    def _next(self) -> None:
        if self._left:
            self._transport.write(self._request)
        else:
            self._end(None)

    def _end(self, error: BenchError | None) -> None:
        if self.done.done():
            return
        if error:
            self.done.set_exception(error)
        else:
            self.done.set_result(None)
        self._transport.close()


def _length(head: bytes) -> int:
    found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    return int(found.group(1)) if found else 0

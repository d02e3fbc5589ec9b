"""The small HTTP client: what it sends, and how it knows the end of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from dtq_load.bench.ingest import BATCH, MANY, ONE, Sender
from dtq_load.bench.stand import BenchError


class FakeTransport(asyncio.Transport):
    """Notes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True


ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello"


def talk(*pieces: bytes, count: int = 2) -> tuple[FakeTransport, BaseException | None]:
    """What a connection writes when these pieces come in, and how it ended."""
    async def converse() -> tuple[FakeTransport, BaseException | None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sender, transport = Sender(b"request", count, done), FakeTransport()
        sender.connection_made(transport)
        for piece in pieces:
            sender.data_received(piece)
        sender.connection_lost(None)
        return transport, done.exception()

    return asyncio.run(converse())


def test_the_next_request_goes_out_when_the_answer_is_in() -> None:
    transport, problem = talk(ANSWER[:30], ANSWER[30:-1], ANSWER[-1:], ANSWER)
    assert transport.written == [b"request"] * 2
    assert transport.is_closed
    assert problem is None


def test_half_an_answer_is_none() -> None:
    transport, problem = talk(ANSWER[:-1])
    assert transport.written == [b"request"]
    assert isinstance(problem, BenchError)


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Service Unavailable"])
def test_a_refusal_ends_the_measurement(status: bytes) -> None:
    _, problem = talk(ANSWER.replace(b"202 Accepted", status))
    assert status.decode() in str(problem)


def test_a_batch_says_how_many_tasks_it_has() -> None:
    assert MANY.tasks == BATCH == MANY.body.count(b'"nothing"')
    assert ONE.to(80).endswith(b"\r\n\r\n" + ONE.body)
    assert f"Content-Length: {len(MANY.body)}\r\n".encode() in MANY.to(80)

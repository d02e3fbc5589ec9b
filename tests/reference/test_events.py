"""Events on their way to WebSocket clients: all of them, in order, and what a slow client costs."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from dtq_conformance.waiting import wait_for
from dtq_reference.events import (
    EVENT_TYPES,
    MAILBOX_SIZE,
    SERVICE_RESTART,
    TERMINAL_TYPES,
    TRY_AGAIN_LATER,
    Fanout,
    Mailbox,
)
from dtq_reference.transport import AsyncTransport
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.reference.engine import Engine, failed, succeeded
from tests.reference.http import LIMIT_S, served

FIELDS = {"event_id", "ts", "type", "task_id", "queue", "task_type", "attempt", "worker_id",
          "metadata"}


def hands_out(mailbox: Mailbox) -> list[str]:
    """What a client would be sent now."""

    async def collect() -> list[str]:
        found = []
        while len(mailbox) or mailbox.close_code:
            text = await mailbox.next()
            if text is None:
                break
            found.append(text)
        return found

    return asyncio.run(collect())


def filled(*, terminal: int) -> Mailbox:
    """A full mailbox whose first events are terminal."""
    mailbox = Mailbox()
    for number in range(MAILBOX_SIZE):
        mailbox.put(str(number), is_terminal=number < terminal)
    return mailbox


# The mailbox ------------------------------------------------------------------------------------

def test_a_mailbox_hands_out_in_order() -> None:
    mailbox = Mailbox()
    for number in range(10):
        mailbox.put(str(number), is_terminal=number % 2 == 0)
    assert hands_out(mailbox) == [str(number) for number in range(10)]
    assert mailbox.dropped == 0


def test_a_full_mailbox_drops_what_is_not_terminal() -> None:
    mailbox = filled(terminal=0)
    mailbox.put("new", is_terminal=False)
    assert mailbox.dropped == 1
    assert hands_out(mailbox) == [str(number) for number in range(MAILBOX_SIZE)]


def test_a_terminal_event_drives_out_the_oldest_that_is_not() -> None:
    mailbox = filled(terminal=2)
    mailbox.put("end", is_terminal=True)
    assert mailbox.dropped == 1
    assert hands_out(mailbox) == ["0", "1", *map(str, range(3, MAILBOX_SIZE)), "end"]


def test_a_client_for_whom_ends_of_tasks_are_too_many_has_to_go() -> None:
    mailbox = filled(terminal=MAILBOX_SIZE)
    mailbox.put("new", is_terminal=False)
    assert mailbox.close_code is None
    mailbox.put("end", is_terminal=True)
    assert mailbox.close_code == TRY_AGAIN_LATER
    assert hands_out(mailbox) == []


def test_what_was_handed_out_makes_room() -> None:
    mailbox = filled(terminal=0)
    assert asyncio.run(mailbox.next()) == "0"
    mailbox.put("new", is_terminal=False)
    assert mailbox.dropped == 0
    assert hands_out(mailbox)[-1] == "new"


def test_the_first_reason_to_go_is_the_one_that_is_told() -> None:
    mailbox = Mailbox()
    mailbox.close(SERVICE_RESTART)
    mailbox.close(TRY_AGAIN_LATER)
    assert mailbox.close_code == SERVICE_RESTART


def test_a_waiting_client_is_woken() -> None:
    async def main() -> tuple[str | None, str | None]:
        mailbox = Mailbox()
        first = asyncio.ensure_future(mailbox.next())
        await asyncio.sleep(0)
        mailbox.put("a", is_terminal=False)
        told = await first
        second = asyncio.ensure_future(mailbox.next())
        await asyncio.sleep(0)
        mailbox.close(TRY_AGAIN_LATER)
        return told, await second

    assert asyncio.run(main()) == ("a", None)


def test_one_slow_client_costs_the_others_nothing() -> None:
    fanout = Fanout(None, "channel")
    slow, quick = fanout.join(), fanout.join()
    for half in range(2):
        for number in range(MAILBOX_SIZE):
            fanout.spread(msgspec.json.encode({"type": "TASK_STARTED", "n": number}))
        assert len(hands_out(quick)) == MAILBOX_SIZE
        assert (slow.dropped, quick.dropped) == (half * MAILBOX_SIZE, 0)
    fanout.leave(slow)
    fanout.spread(b'{"type":"TASK_SUCCEEDED"}')
    assert slow.dropped == MAILBOX_SIZE
    assert hands_out(quick) == ['{"type":"TASK_SUCCEEDED"}']


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"type":1}', b'{"type":"\xff"}', b"\xff"])
def test_what_is_no_event_is_not_handed_on(data: bytes) -> None:
    fanout = Fanout(None, "channel")
    mailbox = fanout.join()
    fanout.spread(data)
    assert hands_out(mailbox) == []


# The subscription -------------------------------------------------------------------------------

def test_a_lost_subscription_is_made_anew_and_its_clients_are_let_go(engine: Engine) -> None:
    async def main() -> None:
        transport = AsyncTransport(engine.settings.redis_url)
        fanout = Fanout(transport.redis, engine.keys.events)
        try:
            async with asyncio.timeout(LIMIT_S):
                old = fanout.join()
                fanout.listen()
                await old.opened.wait()
                engine.redis.client_kill_filter(_type="pubsub")
                assert await old.next() is None
                assert old.close_code == SERVICE_RESTART
                fanout.leave(old)
                new = fanout.join()
                fanout.listen()
                await new.opened.wait()
                engine.redis.publish(engine.keys.events, '{"type":"TASK_QUEUED"}')
                assert await new.next() == '{"type":"TASK_QUEUED"}'
        finally:
            fanout.leave(new)
            await transport.close()

    asyncio.run(main())


# WebSocket clients ------------------------------------------------------------------------------

@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    with served(engine.settings) as url:
        yield url


@contextmanager
def client(engine: Engine, address: str, *, buffer_bytes: int = 0) -> Iterator[ClientConnection]:
    """A client that is sent events: it has seen one that was published for it."""
    plug = socket.socket()
    if buffer_bytes:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    plug.connect(("127.0.0.1", int(address.rpartition(":")[2])))
    with connect(f"ws{address[4:]}{engine.settings.ws_path}", sock=plug, compression=None,
                 max_queue=1) as connection:
        wait_for(lambda: engine.redis.publish(engine.keys.events, '{"type":"HELLO"}'),
                 reason="the API to subscribe", limit_s=LIMIT_S)
        wait_for(lambda: engine.redis.publish(engine.keys.events, '{"type":"HELLO"}')
                 and says_hello(connection), reason="the first event", limit_s=LIMIT_S)
        yield connection


def says_hello(connection: ClientConnection) -> bool:
    try:
        return "HELLO" in str(connection.recv(timeout=0.2))
    except TimeoutError:
        return False


def events(connection: ClientConnection, count: int) -> list[dict[str, Any]]:
    """The next events, those that were only to wake it left out."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        event = json.loads(connection.recv(timeout=LIMIT_S))
        if event["type"] != "HELLO":
            found.append(event)
    return found


def test_a_client_is_sent_one_event_for_each_transition(engine: Engine, address: str) -> None:
    with client(engine, address) as one, client(engine, address) as other:
        worker = engine.worker()
        good, bad = engine.submit(priority=9), engine.submit()
        engine.settle(worker, succeeded(engine.take_one(worker)))
        engine.settle(worker, failed(engine.take_one(worker), retryable=False))
        seen = events(one, 7)
        assert events(other, 7) == seen
    assert [(event["type"], event["task_id"]) for event in seen] == [
        ("WORKER_STARTED", ""), ("TASK_QUEUED", good), ("TASK_QUEUED", bad),
        ("TASK_STARTED", good), ("TASK_SUCCEEDED", good), ("TASK_STARTED", bad),
        ("TASK_DEAD_LETTERED", bad)]
    for event in seen:
        assert event["type"] in EVENT_TYPES
        assert event.keys() <= FIELDS
    assert len({event["event_id"] for event in seen}) == len(seen)


def test_a_client_that_never_reads_is_told_to_come_back(engine: Engine, address: str) -> None:
    """More is sent than its mailbox and the kernel's buffers hold."""
    large = json.dumps({"type": "TASK_SUCCEEDED", "padding": "x" * 4000})
    with client(engine, address, buffer_bytes=4096) as slow, client(engine, address) as quick:
        for _ in range(20):
            for _number in range(100):
                engine.redis.publish(engine.keys.events, large)
            events(quick, 100)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                slow.recv(timeout=LIMIT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == TRY_AGAIN_LATER
        engine.redis.publish(engine.keys.events, '{"type":"TASK_QUEUED"}')
        assert events(quick, 1) == [{"type": "TASK_QUEUED"}]


def test_what_a_client_says_is_ignored_and_its_leaving_is_noticed(
        engine: Engine, address: str) -> None:
    with client(engine, address) as one:
        for _ in range(50):
            one.send("hello?")
        engine.redis.publish(engine.keys.events, '{"type":"TASK_QUEUED"}')
        assert events(one, 1) == [{"type": "TASK_QUEUED"}]
        one.socket.shutdown(socket.SHUT_RDWR)
    with client(engine, address) as other:
        engine.redis.publish(engine.keys.events, '{"type":"TASK_QUEUED"}')
        assert events(other, 1) == [{"type": "TASK_QUEUED"}]


def test_without_a_subscription_a_client_is_told_to_come_back(engine: Engine) -> None:
    nowhere = msgspec.structs.replace(engine.settings, redis_url="redis://127.0.0.1:1/0")
    with served(nowhere) as url, connect(f"ws{url[4:]}{nowhere.ws_path}") as connection:
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=LIMIT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == TRY_AGAIN_LATER


def test_the_ends_of_tasks_are_among_the_types() -> None:
    assert set(EVENT_TYPES) > TERMINAL_TYPES

"""Sending calls: what is sent again, for how long, what is known at the end, and what comes of a
server without scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import pytest
from dtq_conformance.broker import free_port
from dtq_reference import calls
from dtq_reference.calls import Call
from dtq_reference.errors import BrokerUnreachable, DtqError
from dtq_reference.poller import DOORBELL_LIMIT_S
from dtq_reference.transport import (
    SOCKET_TIMEOUT_S,
    AsyncTransport,
    NotConnected,
    Patience,
    Transport,
    fate_of,
)
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    RedisError,
    ResponseError,
    TimeoutError,
)
from redis.retry import Retry

from tests.reference.engine import Engine
from tests.reference.relay import Relay, relay_to

PING = calls.read(("PING",))

PASSING = ("LOADING Redis is loading", "READONLY You can't write", "OOM command not allowed",
           "MISCONF Redis is configured to save", "BUSY Redis is busy", "CLUSTERDOWN down",
           "TRYAGAIN Multiple keys", "MASTERDOWN Link is down", "NOREPLICAS Not enough",
           "MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1")
FINAL = ("ERR unknown", "WRONGTYPE Operation", "BUSYGROUP exists", "NOPERM denied",
         "CROSSSLOT keys", "NOAUTH Authentication required")

Sender = Callable[[str, Call, float], Any]


def send(url: str, call: Call, limit_s: float) -> Any:
    with closing(Transport(url)) as transport:
        return transport.call_again(call, limit_s=limit_s)


def send_async(url: str, call: Call, limit_s: float) -> Any:
    async def sent() -> Any:
        transport = AsyncTransport(url)
        try:
            return await transport.call_again(call, limit_s=limit_s)
        finally:
            await transport.close()

    return asyncio.run(sent())


@pytest.fixture(params=[send, send_async], ids=["synchronous", "asynchronous"])
def sender(request: pytest.FixtureRequest) -> Sender:
    found: Sender = request.param
    return found


@pytest.fixture
def nowhere() -> Iterator[str]:
    held, port = free_port()
    yield f"redis://127.0.0.1:{port}"
    if held is not None:
        held.close()


@pytest.fixture
def relay(engine: Engine) -> Iterator[Relay]:
    with relay_to(urlsplit(engine.settings.redis_url).port or 0) as relay:
        yield relay


def error_of(engine: Engine, reply: str) -> RedisError:
    """What redis-py makes of this reply, given by the server itself."""
    once = Retry(NoBackoff(), 0)
    with closing(Redis.from_url(engine.settings.redis_url, retry=once)) as client, \
            pytest.raises(RedisError) as raised:
        client.execute_command("DEBUG", "ERROR", reply)
    return raised.value


# What a failure means ---------------------------------------------------------------------------

@pytest.mark.parametrize("reply", PASSING)
def test_a_refusal_that_passes_is_one_after_which_asking_again_helps(
        engine: Engine, reply: str) -> None:
    assert fate_of(error_of(engine, reply)) == "refused for now"


@pytest.mark.parametrize("reply", FINAL)
def test_any_other_refusal_is_final(engine: Engine, reply: str) -> None:
    assert fate_of(error_of(engine, reply)) == "refused"


@pytest.mark.parametrize(("error", "fate"), [
    (ConnectionError("Connection closed by server."), "unknown"), (TimeoutError(), "unknown"),
    (NotConnected("Connection refused"), "refused for now"),
    (AuthenticationError("WRONGPASS"), "refused")])
def test_a_lost_answer_is_unknown_and_what_was_not_sent_was_not_done(
        error: RedisError, fate: str) -> None:
    assert fate_of(error) == fate


def test_pauses_grow_and_are_never_longer_than_a_second() -> None:
    patience = Patience(PING, None)
    pauses = list(islice((patience.pause_s(TimeoutError()) for _ in range(100)), 100))
    assert 0 < pauses[0] <= 0.02
    assert all(0.5 <= pause_s <= 1 for pause_s in pauses[10:])


@pytest.mark.parametrize(("errors", "told"), [
    ([NotConnected(), BusyLoadingError()], DtqError),
    ([TimeoutError(), NotConnected()], BrokerUnreachable),
    ([BusyLoadingError(), ConnectionError()], BrokerUnreachable),
    ([TimeoutError(), ResponseError("WRONGTYPE")], ResponseError)])
def test_at_the_end_one_sending_of_unknown_fate_makes_all_unknown(
        errors: list[RedisError], told: type[Exception]) -> None:
    patience = Patience(PING, 0.4)
    patience.pause_s(errors[0])
    with pytest.raises(told):
        for _ in range(10):  # pauses grow beyond the limit
            patience.pause_s(errors[1])


def test_no_answer_is_waited_for_longer_than_the_longest_blocking_read_takes() -> None:
    assert SOCKET_TIMEOUT_S > DOORBELL_LIMIT_S


@pytest.mark.parametrize("reply", ["READONLY no", "MOVED 1 127.0.0.1:1", "CLUSTERDOWN no"])
def test_after_a_refusal_that_sends_elsewhere_the_next_connection_is_a_new_one(
        engine: Engine, reply: str) -> None:
    async def ids() -> list[int]:
        async with AsyncTransport(engine.settings.redis_url).redis as client:
            found = [await client.client_id()]
            for error in ("OOM no", reply):
                with pytest.raises(RedisError):
                    await client.execute_command("DEBUG", "ERROR", error)
                found.append(await client.client_id())
        return found

    first, after_the_other, after_this = asyncio.run(ids())
    assert first == after_the_other != after_this


# Sending again ----------------------------------------------------------------------------------

# WORK-16
def test_a_server_that_lost_its_scripts_gets_the_source(engine: Engine) -> None:
    for _ in range(2):
        engine.redis.script_flush()
        assert engine.promote().leader


def test_one_call_is_sent_once_and_redis_pys_own_retries_are_off(nowhere: str) -> None:
    with pytest.raises(NotConnected):
        Transport(nowhere).call(PING)
    retry = AsyncTransport(nowhere).redis.connection_pool.make_connection().retry
    assert retry.get_retries() == 0


# WORK-23
def test_when_nobody_could_be_reached_surely_nothing_was_done(
        nowhere: str, sender: Sender) -> None:
    with pytest.raises(DtqError, match="Nothing was done") as refused:
        sender(nowhere, PING, 0.1)
    assert refused.value.code == "BROKER_UNAVAILABLE"


def test_a_socket_file_that_is_not_there_is_nobody_reached(sender: Sender) -> None:
    with pytest.raises(DtqError, match=r"nowhere\.sock.*Nothing was done"):
        sender("unix:///nowhere.sock", PING, 0.1)


def test_what_the_server_refuses_for_good_is_not_sent_again(
        engine: Engine, sender: Sender) -> None:
    engine.redis.set(engine.keys.schedule, "not a sorted set")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        sender(engine.settings.redis_url, engine.promote_call(), 60)


# WORK-20, WORK-23
@pytest.mark.slow
def test_a_half_open_connection_is_noticed_and_one_lost_answer_makes_it_unknown(
        engine: Engine, relay: Relay) -> None:
    url = f"redis://127.0.0.1:{relay.port}"
    with closing(Transport(url)) as transport:
        assert transport.call(PING) == [b"PONG"]
        relay.silence("replies")
        with pytest.raises(BrokerUnreachable, match="Whether it was done is unknown"):
            transport.call_again(PING, limit_s=SOCKET_TIMEOUT_S)
        relay.heal()
        assert transport.call_again(PING, limit_s=60) == [b"PONG"]


@pytest.mark.slow
def test_after_a_lost_answer_no_connection_from_before_is_trusted(
        engine: Engine, relay: Relay) -> None:
    async def answers() -> Any:
        first, second = (AsyncTransport(f"redis://127.0.0.1:{relay.port}") for _ in range(2))
        for transport in (first, second):
            await transport.call(PING)
        relay.silence("replies")
        with pytest.raises(TimeoutError):
            await first.call(PING)
        relay.heal()
        answer = await second.call(PING)
        await first.close()
        await second.close()
        return answer

    assert asyncio.run(answers()) == [b"PONG"]


@pytest.mark.slow
def test_a_subscription_outlives_an_answer_that_was_lost_elsewhere(
        engine: Engine, relay: Relay) -> None:
    async def hears() -> list[str]:
        transport = AsyncTransport(engine.settings.redis_url)
        async with transport.redis.pubsub() as subscription:
            await subscription.subscribe(engine.keys.events)
            await subscription.get_message(timeout=5)
            relay.silence()
            with pytest.raises(NotConnected):
                await AsyncTransport(f"redis://127.0.0.1:{relay.port}").call(PING)
            await transport.redis.publish(engine.keys.events, "a new one would miss it")
            await subscription.ping()
            heard = [(await subscription.get_message(timeout=5))["type"] for _ in range(2)]
        await transport.close()
        return heard

    assert asyncio.run(hears()) == ["message", "pong"]


# WORK-20
@pytest.mark.slow
def test_a_half_open_connection_is_noticed_on_an_event_loop_too(
        engine: Engine, relay: Relay) -> None:
    async def outlives() -> None:
        transport = AsyncTransport(f"redis://127.0.0.1:{relay.port}")
        await transport.call(PING)
        relay.silence()
        with pytest.raises(TimeoutError):
            await transport.call(PING)
        relay.heal()
        assert await transport.call_again(PING) == [b"PONG"]
        await transport.close()

    asyncio.run(outlives())

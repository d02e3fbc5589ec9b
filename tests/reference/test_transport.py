"""Sending calls: what is sent again, for how long, and what comes of a server without scripts."""

from __future__ import annotations

import pytest
from dtq_conformance.broker import free_port
from dtq_reference import calls
from dtq_reference.errors import BrokerUnreachable
from dtq_reference.keys import Keys
from dtq_reference.transport import AsyncTransport, Transport
from redis.exceptions import ConnectionError, ResponseError

from tests.reference.engine import Engine

CALL = calls.promote(Keys("x:"), "consumer", ["default"])


@pytest.fixture
def nowhere() -> str:
    held, port = free_port()
    if held is not None:
        held.close()
    return f"redis://127.0.0.1:{port}"


def test_a_server_that_lost_its_scripts_gets_the_source(engine: Engine) -> None:
    for _ in range(2):
        engine.redis.script_flush()
        assert engine.promote().leader


def test_one_call_is_sent_once_and_redis_pys_own_retries_are_off(nowhere: str) -> None:
    transport = Transport(nowhere)
    with pytest.raises(ConnectionError):
        transport.call(CALL)
    for made in (transport.redis, AsyncTransport(nowhere).redis):
        retry = made.connection_pool.make_connection().retry
        assert retry.get_retries() == 0


def test_it_sends_again_until_the_time_is_up_and_then_says_that_it_does_not_know(
        nowhere: str) -> None:
    with pytest.raises(BrokerUnreachable, match="Whether it was done is unknown"):
        Transport(nowhere).call_again(CALL, limit_s=0.1)


def test_what_the_server_refuses_is_not_sent_again(engine: Engine) -> None:
    engine.redis.set(engine.keys.schedule, "not a sorted set")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        engine.transport.call_again(engine.promote_call(), limit_s=60)

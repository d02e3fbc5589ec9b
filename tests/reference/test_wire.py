"""A connection made of a socket and hiredis alone."""

from __future__ import annotations

import pytest
from dtq_reference.transport import address_of
from dtq_reference.wire import Address, Connection, ScriptError

from tests.reference.engine import Engine


def test_a_connection_speaks_to_the_server_and_passes_on_its_errors(engine: Engine) -> None:
    connection = Connection(address_of(engine.settings.redis_url), 5.0)
    assert connection.call("PING") == b"PONG"
    assert connection.call("ECHO", b"x" * 200_000) == b"x" * 200_000
    with pytest.raises(ScriptError, match="unknown command"):
        connection.call("NO-SUCH-COMMAND")
    assert connection.call("PING") == b"PONG"
    connection.close()


def test_a_connection_that_cannot_be_made_is_an_os_error() -> None:
    with pytest.raises(OSError):
        Connection(Address(port=1), 1.0).call("PING")


@pytest.mark.parametrize("reply", ["READONLY no", "MOVED 1 127.0.0.1:1", "CLUSTERDOWN no"])
def test_a_refusal_that_sends_elsewhere_is_followed_by_a_new_connection(
        engine: Engine, reply: str) -> None:
    connection = Connection(address_of(engine.settings.redis_url), 5.0)
    before = connection.call("CLIENT", "ID")
    with pytest.raises(ScriptError):
        connection.call("DEBUG", "ERROR", "OOM no")
    assert connection.call("CLIENT", "ID") == before
    with pytest.raises(ScriptError):
        connection.call("DEBUG", "ERROR", reply)
    assert connection.call("CLIENT", "ID") != before
    connection.close()

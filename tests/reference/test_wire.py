"""A connection made of a socket and hiredis alone, and the master of a slot."""

from __future__ import annotations

import hashlib
import socket
import threading

import pytest
from dtq_reference.cluster import address_of
from dtq_reference.wire import Address, Connection, NotSent, ScriptError, Slot

from tests.reference.engine import Engine


def test_a_connection_speaks_to_the_server_and_passes_on_its_errors(engine: Engine) -> None:
    connection = Connection(address_of(engine.settings.redis_url), 5.0)
    assert connection.call("PING") == b"PONG"
    assert connection.call("ECHO", b"x" * 200_000) == b"x" * 200_000
    with pytest.raises(ScriptError, match="unknown command"):
        connection.call("NO-SUCH-COMMAND")
    assert connection.call("PING") == b"PONG"
    connection.close()


@pytest.mark.parametrize(("address", "named"), [
    (Address(host="127.0.0.1", port=1), "127.0.0.1:1"), (Address(path="/nowhere"), "/nowhere")])
def test_what_cannot_be_reached_was_sent_nothing_and_is_named(
        address: Address, named: str) -> None:
    with pytest.raises(NotSent, match=named):
        Connection(address, 1.0).call("PING")


def test_what_is_no_redis_is_trouble_with_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection(Address(port=server.getsockname()[1]), 5.0)

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(ConnectionError, match="no Redis"):
            connection.call("PING")
        answering.join()


def test_a_server_that_does_not_know_a_script_gets_its_source(engine: Engine) -> None:
    connection = Connection(address_of(engine.settings.redis_url), 5.0)
    source = f"return '{engine.keys.prefix}'"
    sha = hashlib.sha1(source.encode()).hexdigest()
    for _ in range(2):
        assert connection.run(sha, source, [], b"") == engine.keys.prefix.encode()
    connection.close()


# In a cluster -----------------------------------------------------------------------------------

def test_the_master_is_the_first_node_of_the_range_that_has_the_slot() -> None:
    slot = Slot(Address(slot=9, nodes=[("seed", 1)]))
    reply = [[0, 8, [b"other", 2, b"id"]], [9, 9, [b"", 3, b"id"], [None, 4, b"id"]]]
    assert slot.master(("seed", 1), reply) == ("seed", 3)
    assert slot.master(("other", 2), reply[:1]) is None


def test_a_slot_that_no_node_tells_of_is_an_os_error() -> None:
    address = Address(nodes=[("127.0.0.1", 1), ("127.0.0.1", 2)], slot=5)
    with pytest.raises(OSError, match="no node tells the master of slot 5"):
        Slot(address).find()


def test_without_a_cluster_the_server_is_where_it_always_is() -> None:
    assert Slot(Address(host="h", port=1)).find() == ("h", 1)


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

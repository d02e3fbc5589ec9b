"""The heartbeat as a process of its own: no handler holds it up, and it ends with its worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference.heartbeat import address_of
from dtq_reference.heartbeat_process import Address, Connection, ScriptError
from redis.crc import key_slot

from tests.reference.engine import Engine
from tests.reference.processes import LIMIT_S, heartbeat_of, start_worker, wait_for_status

pytestmark = pytest.mark.slow


def test_a_handler_that_holds_up_the_loop_for_several_leases_keeps_its_task(
        lab: Lab, engine: Engine, tmp_path: Path) -> None:
    until = tmp_path / "until"
    start_worker(lab, engine, "blocked", concurrency=1)
    task_id = engine.submit(task_type="wait_and_block", payload={"until": str(until)})
    wait_for_status(engine, task_id, "running")
    other = start_worker(lab, engine, "other")
    key = engine.keys.worker_prefix + "blocked"
    first = int(engine.redis.hget(key, "last_heartbeat"))
    wait_for(lambda: int(engine.redis.hget(key, "last_heartbeat")) > first + 3_000,
             reason="three leases of heartbeats", limit_s=LIMIT_S)
    until.touch()
    task = wait_for_status(engine, task_id)
    assert (task.status, task.attempt, task.worker_id) == ("succeeded", 1, "blocked")
    assert other.alive


def test_it_ends_with_a_worker_that_was_killed_alone(lab: Lab, engine: Engine) -> None:
    worker = start_worker(lab, engine)
    heartbeat = heartbeat_of(worker)
    os.kill(worker.pid, signal.SIGKILL)

    def is_gone() -> bool:
        return not heartbeat.is_running() or heartbeat.status() == psutil.STATUS_ZOMBIE

    wait_for(is_gone, reason="the heartbeat to end", limit_s=LIMIT_S)


@pytest.mark.parametrize(("url", "address"), [
    ("redis://localhost", Address()),
    ("redis://u%40:p%2F@h:1/2", Address(host="h", port=1, username="u@", password="p/", db=2)),
    ("rediss://h:1", Address(host="h", port=1, tls=True)),
    ("unix:///run/redis.sock?db=3", Address(path="/run/redis.sock", db=3))])
def test_an_address_is_what_redis_py_reads_in_the_url(url: str, address: Address) -> None:
    assert address_of(url) == address


def test_an_address_in_a_cluster_is_its_nodes_and_the_slot_of_the_prefix() -> None:
    assert address_of("rediss+cluster://:p@a:1,b:2", "{orders}:") == Address(
        host="a", port=1, tls=True, password="p", nodes=[("a", 1), ("b", 2)],
        slot=key_slot(b"orders"))


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


def test_a_slot_that_no_node_tells_of_is_an_os_error() -> None:
    address = Address(nodes=[("127.0.0.1", 1), ("127.0.0.1", 2)], slot=5)
    with pytest.raises(OSError, match="no node tells the master of slot 5"):
        Connection(address, 1.0).call("PING")


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

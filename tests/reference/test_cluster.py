"""One slot of a cluster is an installation's whole world: found, followed when its master dies, and
kept apart from others. Without a cluster two installations share a server as well.

Profile `failover`: judged is only what the replica had received before its master died. What was
accepted after that, and not yet replicated, may be lost.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from dtq_conformance import snapshot
from dtq_conformance.checkers import one_way_leads_to_each_unfinished_task as one_way
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference import settings
from dtq_reference.cluster import address_of, slot_of
from dtq_reference.errors import SettingsError
from dtq_reference.transport import AsyncTransport
from dtq_reference.wire import Address, Connection, ScriptError
from redis.connection import parse_url
from redis.crc import key_slot
from redis.exceptions import MovedError

from tests.conformance.histories import history
from tests.reference.clusters import LIMIT_S, Cluster, Node, running_cluster
from tests.reference.engine import Engine, succeeded
from tests.reference.processes import served_api, start_worker, status_of, wait_for_status

FOLLOWED = "{orders}:"
OTHER = "{invoices}:"
ANY = "{any}:"
EVENTFUL = "{eventful}:"
MOVING = "{moving}:"


@pytest.fixture(scope="module")
def cluster(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for tests that leave it whole."""
    with running_cluster(lab, tmp_path_factory.mktemp("cluster"), followed=FOLLOWED) as cluster:
        yield cluster


# Reading URLs, prefixes and replies -------------------------------------------------------------

@pytest.mark.parametrize(("prefix", "slot"), [
    ("dtq:", None), ("{}:", None), ("{}{a}:", None), ("{a:", None), ("a}{:", None),
    ("{orders}:", key_slot(b"orders")), ("x{ä}y{b}:", key_slot("ä".encode())),
    ("{{a}:", key_slot(b"{a"))])
def test_only_a_hash_tag_gives_all_keys_one_slot(prefix: str, slot: int | None) -> None:
    assert slot_of(prefix) == slot
    if slot is not None:
        assert {key_slot(f"{prefix}{name}".encode()) for name in ("a", "{b}", "}")} == {slot}


@pytest.mark.parametrize(("url", "address"), [
    ("redis://localhost", Address()), ("redis://", Address()),
    ("redis://u%40:p%2F@h:1/2", Address(host="h", port=1, username="u@", password="p/", db=2)),
    ("redis://h?db=3", Address(host="h", db=3)),
    ("rediss://h:1", Address(host="h", port=1, tls=True)),
    ("redis://[::1]:2", Address(host="::1", port=2)),
    ("unix:///run/redis.sock?db=3", Address(path="/run/redis.sock", db=3))])
def test_an_address_is_what_redis_py_reads_in_the_url(url: str, address: Address) -> None:
    assert address_of(url, "{orders}:") == address
    read = parse_url(url)
    assert {name: address._asdict()[name] for name in read if name != "connection_class"} == {
        name: value for name, value in read.items() if name != "connection_class"}


@pytest.mark.parametrize(("url", "address"), [
    ("redis+cluster://h", Address(host="h", nodes=[("h", 6379)])),
    ("redis+cluster://a:1,b:2", Address(host="a", port=1, nodes=[("a", 1), ("b", 2)])),
    ("rediss+cluster://u:p,%40@a:1,[::1]:2/0", Address(
        host="a", port=1, nodes=[("a", 1), ("::1", 2)], tls=True, username="u",
        password="p,@"))])
def test_an_address_in_a_cluster_is_its_nodes_and_the_slot_of_the_prefix(
        url: str, address: Address) -> None:
    assert address_of(url, "{orders}:") == address._replace(slot=key_slot(b"orders"))
    assert address_of(url, "dtq:") == address


@pytest.mark.parametrize("url", ["redis://a:1,b:2", "unix://", "redis://h#1", "redis://h/one",
                                 "redis://h?db", "rediss://h?ssl_cert_reqs=none"])
def test_what_no_connection_would_do_is_no_address(url: str) -> None:
    with pytest.raises(ValueError):
        address_of(url)


@pytest.mark.parametrize(("url", "prefix", "reason"), [
    ("redis+cluster://h", "dtq:", r"DTQ_KEY_PREFIX is 'dtq:'.*hash tag"),
    ("redis+cluster://h:x", "{a}:", "DTQ_REDIS_URL is malformed"),
    ("redis+cluster://h,h:x", "{a}:", "DTQ_REDIS_URL is malformed")])
def test_a_cluster_that_cannot_be_used_is_refused_at_the_start(
        url: str, prefix: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        settings.load({"DTQ_REDIS_URL": url, "DTQ_KEY_PREFIX": prefix})


# On a cluster -----------------------------------------------------------------------------------

# DUR-06, DUR-07
@pytest.mark.slow
def test_a_worker_outlives_the_master_of_its_slot_and_keeps_what_the_replica_has(
        lab: Lab, tmp_path: Path) -> None:
    until = tmp_path / "until"
    with running_cluster(lab, tmp_path / "cluster", followed=FOLLOWED) as cluster, \
            closing(Engine(cluster.url, FOLLOWED)) as engine, \
            served_api(lab, engine) as api:
        worker = start_worker(lab, engine, "clustered", concurrency=2, visibility_timeout_s=20)
        assert wait_for_status(engine, engine.submit()).status == "succeeded"
        kept = [engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
                for _ in range(4)]
        for task_id in kept[:2]:
            wait_for_status(engine, task_id, "running")
        wait_for_replication(cluster)
        assert status_of(api, "/ready") == 200
        cluster.followed.process.kill()
        wait_for(lambda: status_of(api, "/ready") == 503, reason="the API to say so",
                 limit_s=LIMIT_S)
        wait_for(lambda: cluster.replica.ask("INFO", "replication")["role"] == "master",
                 reason="the replica to take over", limit_s=LIMIT_S)
        assert half_steps_of(cluster.replica) == []
        taken_over = time.monotonic()
        until.touch()
        kept.append(api.post("/api/v1/tasks", json={"task_type": "echo_task"}).json()["task_id"])
        for task_id in kept:
            task = wait_for_status(engine, task_id)
            assert (task.status, task.attempt, task.worker_id) == ("succeeded", 1, "clustered")
        print(f"new work was done {time.monotonic() - taken_over:.2f} s after the takeover")
        wait_for(lambda: beats(cluster.replica, f"{FOLLOWED}worker:clustered"),
                 reason="a heartbeat on the new master", limit_s=LIMIT_S)
        wait_for(lambda: status_of(api, "/ready") == 200, reason="the API to be ready",
                 limit_s=LIMIT_S)
        worker.terminate()
        worker.wait(LIMIT_S)
        assert worker.exit_code == 0


def half_steps_of(node: Node) -> list[str]:
    """What the judge finds wrong in a snapshot of the key space that a server has."""
    with node.client() as client:
        seen = history(snapshot.take(client, FOLLOWED))
    told = {verdict.clause: verdict for verdict in one_way.check(seen)}
    assert told["DLV-12"].judged
    return [each.sentence for each in told.values() if each.status == "violated"]


def beats(node: Node, worker: str) -> bool:
    """Whether the server's own clock is close to the last heartbeat in a worker's hash."""
    with node.client() as client:
        beat, (seconds, _) = client.hget(worker, "last_heartbeat"), client.time()
        return beat is not None and seconds * 1000 - int(beat) < 500


def wait_for_replication(cluster: Cluster) -> None:
    """Return when the replica has received all that its master had done by now."""
    done = cluster.followed.ask("INFO", "replication")["master_repl_offset"]
    wait_for(lambda: cluster.replica.ask("INFO", "replication")["slave_repl_offset"] >= done,
             reason="the replica to have it all", limit_s=LIMIT_S)


@pytest.mark.slow
def test_a_worker_follows_its_slot_to_another_master(
        lab: Lab, cluster: Cluster, tmp_path: Path) -> None:
    until, home, slot = tmp_path / "until", cluster.master_of(MOVING), slot_of(MOVING)
    away = next(node for node in cluster.masters if node not in (home, cluster.followed))
    with closing(Engine(cluster.url, MOVING)) as engine:
        start_worker(lab, engine, "mover", visibility_timeout_s=20)
        held = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
        wait_for_status(engine, held, "running")
        home.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE",
                 away.ask("CLUSTER", "MYID"))
        wait_for(lambda: has_moved(home, engine.keys.workers), reason="the slot to move",
                 limit_s=LIMIT_S)
        until.touch()
        for task_id in (held, engine.submit()):
            task = wait_for_status(engine, task_id)
            assert (task.status, task.attempt, task.worker_id) == ("succeeded", 1, "mover")
        wait_for(lambda: beats(away, f"{MOVING}worker:mover"), reason="a heartbeat over there",
                 limit_s=LIMIT_S)


def has_moved(node: Node, key: str) -> bool:
    try:
        node.ask("EXISTS", key)
    except MovedError:
        return True
    return False


# KEY-10
@pytest.mark.slow
def test_two_prefixes_live_on_two_masters_side_by_side(lab: Lab, cluster: Cluster) -> None:
    homes = [cluster.master_of(prefix) for prefix in (FOLLOWED, OTHER)]
    assert homes[0] != homes[1]
    for prefix, home, away in zip((FOLLOWED, OTHER), homes, reversed(homes), strict=True):
        with closing(Engine(cluster.url, prefix)) as engine:
            start_worker(lab, engine, f"of-{home.port}")
            task = wait_for_status(engine, engine.submit(delay_ms=1))
            assert (task.status, task.worker_id) == ("succeeded", f"of-{home.port}")
        with home.client() as client:
            assert list(client.scan_iter(f"{prefix}*"))
        with away.client() as client:
            assert not list(client.scan_iter(f"{prefix}*"))


@pytest.mark.slow
def test_the_command_line_works_on_a_cluster(cluster: Cluster) -> None:
    def dtq(*arguments: str) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-m", "dtq_reference.cli", *arguments], capture_output=True,
            env={"DTQ_REDIS_URL": cluster.url, "DTQ_KEY_PREFIX": "{cli}:"}, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr.decode()
        told: dict[str, object] = json.loads(done.stdout)
        return told

    task_id = str(dtq("submit", "echo_task")["task_id"])
    assert dtq("get", task_id)["status"] == "queued"


@pytest.mark.slow
def test_events_are_heard_on_every_node(cluster: Cluster) -> None:
    for node in (*cluster.masters, cluster.replica):
        with closing(Engine(cluster.url, EVENTFUL)) as engine, node.client() as client, \
                client.pubsub(ignore_subscribe_messages=True) as subscription:
            subscription.subscribe(engine.keys.events)
            subscription.get_message(timeout=LIMIT_S)
            answers = engine.do(engine.operations.submit_all([{"task_type": "echo_task"}] * 3))
            heard: list[str] = []
            while answers[-1].task_id not in heard:
                event = subscription.get_message(timeout=LIMIT_S)
                heard.append(json.loads(event["data"])["task_id"])
            # before them may come what other nodes passed on late
            assert heard[-len(answers):] == [answer.task_id for answer in answers]


@pytest.mark.slow
def test_all_three_connections_find_the_master_from_any_node(cluster: Cluster) -> None:
    elsewhere = next(prefix for prefix in (FOLLOWED, OTHER)
                     if cluster.master_of(prefix) != cluster.master_of(ANY))
    for node in (*cluster.masters, cluster.replica):
        url = f"redis+cluster://127.0.0.1:1,127.0.0.1:{node.port}"
        with closing(Engine(url, ANY)) as engine:
            worker = engine.worker()
            engine.submit()
            assert engine.settle(worker, succeeded(engine.take_one(worker))) == ["succeeded"]
        assert asyncio.run(asked(AsyncTransport(url, ANY))) == 1
        connection = Connection(address_of(url, ANY), 5.0)
        assert connection.call("EXISTS", f"{ANY}workers") == 1
        with pytest.raises(ScriptError, match="MOVED"):
            connection.call("EXISTS", f"{elsewhere}workers")
        connection.close()


async def asked(transport: AsyncTransport) -> int:
    there: int = await transport.redis.exists(f"{ANY}workers")
    await transport.close()
    return there


# On one server ----------------------------------------------------------------------------------

# KEY-09
@pytest.mark.slow
def test_two_installations_on_one_server_do_not_touch_each_other(lab: Lab, engine: Engine) -> None:
    with closing(Engine(lab.broker.url, f"t-{secrets.token_hex(4)}:")) as other:
        waits = other.submit()
        before = other.dump()
        start_worker(lab, engine)
        done = engine.submit(max_attempts=1, task_type="always_fail_task")
        assert wait_for_status(engine, done).status == "dead_lettered"
        assert wait_for_status(engine, engine.submit(delay_ms=1)).status == "succeeded"
        assert (other.dump(), other.queue.get(done)) == (before, None)
        start_worker(lab, other)
        assert wait_for_status(other, waits).status == "succeeded"
        assert engine.queue.get(waits) is None

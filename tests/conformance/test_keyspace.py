"""The contract's keys read from outside, on a real server, as an engine would have left them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from dtq_conformance.keyspace import GROUP, LEVELS, KeySpace

from tests.conformance.miniature import lab_in


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab, lab.broker.connect() as client:
        yield client


@pytest.fixture
def client(server: redis.Redis) -> redis.Redis:
    server.flushdb()
    return server


@pytest.fixture
def keys(client: redis.Redis) -> KeySpace:
    return KeySpace(client, "p:")


def enqueue(client: redis.Redis, *task_ids: str, level: int = 5, prefix: str = "p:") -> None:
    for task_id in task_ids:
        client.hset(f"{prefix}task:{task_id}", "status", "queued")
        client.xadd(f"{prefix}stream:default:p{level}", {"task_id": task_id, "attempt": 1})


def take(client: redis.Redis, consumer: str, count: int, *, level: int = 5,
         prefix: str = "p:") -> None:
    stream = f"{prefix}stream:default:p{level}"
    if not client.exists(stream) or not client.xinfo_groups(stream):
        client.xgroup_create(stream, GROUP, id="0", mkstream=True)
    client.xreadgroup(GROUP, consumer, {stream: ">"}, count=count)


def test_in_hand_is_what_the_server_shows_as_pending_on_every_level(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b", "c")
    enqueue(client, "top", level=9)
    take(client, "worker-1.x", 2)
    take(client, "worker-1.x", 1, level=9)
    take(client, "worker-2.x", 1)
    assert keys.in_hand("worker-1") == ["top", "a", "b"]
    assert keys.in_hand("worker-2") == ["c"]


def test_in_hand_are_those_of_every_process_of_a_worker_and_of_no_other_worker(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b", "c", "d")
    for consumer in ("worker-1.old", "worker-1.new", "worker-10.x", "worker-1"):
        take(client, consumer, 1)
    assert sorted(keys.in_hand("worker-1")) == ["a", "b"]


def test_nothing_is_in_hand_where_no_worker_has_been(client: redis.Redis, keys: KeySpace) -> None:
    assert keys.in_hand("worker-1") == []
    enqueue(client, "a")
    assert keys.in_hand("worker-1") == []


def test_what_is_acknowledged_is_in_nobodys_hand(client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b")
    take(client, "worker-1.x", 2)
    (first, _), _ = client.xrange("p:stream:default:p5")
    client.xack("p:stream:default:p5", GROUP, first)
    assert keys.in_hand("worker-1") == ["b"]


def test_another_installation_on_the_same_server_is_not_seen(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", prefix="q:")
    take(client, "worker-1.x", 1, prefix="q:")
    assert (keys.in_hand("worker-1"), keys.entries_of("a")) == ([], 0)
    assert not keys.delete_task("a")


def test_entries_that_lead_to_a_task_are_counted_on_every_level(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b", "a")
    enqueue(client, "a", level=0)
    assert [keys.entries_of(task_id) for task_id in ("a", "b", "c")] == [3, 1, 0]


def test_deleting_a_task_removes_its_record_and_its_entry_and_nothing_else(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b")
    assert keys.delete_task("a")
    assert (client.exists("p:task:a"), keys.entries_of("a")) == (0, 0)
    assert (client.exists("p:task:b"), keys.entries_of("b")) == (1, 1)


def test_a_task_that_does_not_wait_is_not_deleted(client: redis.Redis, keys: KeySpace) -> None:
    client.hset("p:task:a", "status", "succeeded")
    assert not keys.delete_task("a")
    assert client.exists("p:task:a")


def test_pending_of_is_what_one_process_of_a_worker_has(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b")
    take(client, "worker-1.old", 1)
    take(client, "worker-1.new", 1)
    assert keys.pending_of("worker-1.old") == ["a"]
    assert keys.pending_of("worker-1.gone") == []


def test_the_process_of_a_worker_is_the_one_that_its_hash_names(
        client: redis.Redis, keys: KeySpace) -> None:
    assert keys.process_of("worker-1") == ("worker-1.", "")
    client.hset("p:worker:worker-1", mapping={"incarnation": "0123abcd", "started_at": "17"})
    assert keys.process_of("worker-1") == ("worker-1.0123abcd", "17")


def test_a_consumer_of_nobody_is_there_until_somebody_removes_it(
        client: redis.Redis, keys: KeySpace) -> None:
    for level in LEVELS:
        client.xgroup_create(f"p:stream:default:p{level}", GROUP, id="0", mkstream=True)
    assert not keys.has_consumer("ghost.1")
    keys.add_consumer("ghost.1")
    assert keys.has_consumer("ghost.1")
    for level in LEVELS:
        client.xgroup_delconsumer(f"p:stream:default:p{level}", GROUP, "ghost.1")
    assert not keys.has_consumer("ghost.1")


def test_groups_are_dropped_with_what_is_pending_and_the_entries_stay(
        client: redis.Redis, keys: KeySpace) -> None:
    assert keys.drop_groups() == 0
    enqueue(client, "a")
    take(client, "worker-1.x", 1)
    assert keys.drop_groups() == 1
    assert (keys.in_hand("worker-1"), keys.entries_of("a")) == ([], 1)


def test_groups_are_forgotten_in_a_step_that_tells_what_they_led_to(
        client: redis.Redis, keys: KeySpace) -> None:
    assert keys.forget_groups() == {"groups": 0, "left": 0, "in_hand": 0, "waiting": 0}
    enqueue(client, "a", "b", "c", "d")
    enqueue(client, "low", level=0)
    take(client, "worker-1.x", 1)
    take(client, "released", 1)
    assert keys.forget_groups() == {"groups": 1, "left": 0, "in_hand": 1, "waiting": 4}
    assert keys.forget_groups() == {"groups": 0, "left": 0, "in_hand": 0, "waiting": 5}


def test_a_forged_entry_is_one_that_a_worker_could_take_and_has_no_record(
        client: redis.Redis, keys: KeySpace) -> None:
    keys.forge_entry("a", {"steps": []})
    ((_, fields),) = client.xrange("p:stream:default:p4")
    assert (fields[b"task_id"], fields[b"payload"]) == (b"a", b'{"steps": []}')
    assert keys.entries_of("a") == 1
    assert not client.exists("p:task:a")


def test_a_worker_tells_what_it_has_in_hand_and_what_it_has_done(
        client: redis.Redis, keys: KeySpace) -> None:
    assert keys.told_by("worker-1") == (0, 0)
    client.hset("p:worker:worker-1", mapping={"active_tasks": 2, "tasks_processed": 17})
    assert keys.told_by("worker-1") == (2, 17)


@pytest.mark.parametrize(("setting", "value", "mended", "word"), [
    ("maxmemory", "1", "0", "OOM"), ("min-replicas-to-write", "1", "0", "NOREPLICAS")])
def test_a_refusal_of_writes_is_told_by_its_first_word_and_nothing_is_written(
        client: redis.Redis, keys: KeySpace, setting: str, value: str, mended: str,
        word: str) -> None:
    assert keys.refusal() == ""
    client.config_set(setting, value)
    assert keys.refusal() == word
    client.config_set(setting, mended)
    assert keys.refusal() == ""
    assert client.dbsize() == 0


@pytest.mark.parametrize("changed", [
    lambda client: client.set("p:queue:default:paused", 1),
    lambda client: client.delete("p:queues"),
    lambda client: client.hset("p:task:a", "status", "running"),
    lambda client: client.expire("p:task:a", 100),
    lambda client: client.zadd("p:retry:schedule", {"b": 2}),
    lambda client: client.sadd("p:queues", "other"),
    lambda client: take(client, "worker-1.x", 1)])
def test_contents_tell_whatever_was_changed_under_the_prefix_and_nothing_else(
        client: redis.Redis, keys: KeySpace, changed: Callable[[redis.Redis], Any]) -> None:
    enqueue(client, "a")
    take(client, "worker-0.x", 1)
    enqueue(client, "b")
    client.sadd("p:queues", "default")
    client.zadd("p:retry:schedule", {"b": 1})
    before = keys.contents()
    client.set("q:queue:default:paused", 1)
    assert keys.contents() == before
    changed(client)
    assert keys.contents() != before


def test_how_a_task_waits_is_its_status_and_every_entry_that_leads_to_it(
        client: redis.Redis, keys: KeySpace) -> None:
    enqueue(client, "a", "b")
    enqueue(client, "a", level=9)
    levels = [entry.partition(" ")[0] for entry in keys.waits_as("a")["entries"]]
    assert (keys.waits_as("a")["status"], levels) == ("queued", ["p9", "p5"])
    [(entry_id, _)] = client.xrange("p:stream:default:p9")
    assert keys.waits_as("a")["entries"][0] == f"p9 {entry_id.decode()}"
    assert keys.waits_as("c") == {"status": "", "entries": []}

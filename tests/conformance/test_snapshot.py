"""A snapshot: everything that leads to a task, read in one step from a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from dtq_conformance.lab import Lab
from dtq_conformance.snapshot import ABSENT, SHOWN, Alike, Depth, Hands, Snapshot, take, taken

PREFIX = "t[ab]*:"
"""One that a glob would take for a pattern."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with Lab(tmp_path_factory.mktemp("logs")) as lab, lab.broker.connect() as client:
        yield client


@pytest.fixture
def client(server: redis.Redis) -> redis.Redis:
    server.flushdb()
    return server


def task(client: redis.Redis, task_id: str, status: str, *, level: int = 5,
         queue: str = "default", **ways: Any) -> None:
    """A task, and what leads to it: entry (a level), member, letters, result."""
    client.hset(f"{PREFIX}task:{task_id}", mapping={
        "status": status, "queue": queue, "priority": level, "payload": "secret"})
    if "entry" in ways:
        client.xadd(f"{PREFIX}stream:{queue}:p{ways['entry']}", {"task_id": task_id, "attempt": 1})
    if "member" in ways:
        client.zadd(f"{PREFIX}retry:schedule", {task_id: 1})
    for _ in range(ways.get("letters", 0)):
        client.xadd(f"{PREFIX}stream:dead-letter", {"attempt": 1, "task_id": task_id})
    if "result" in ways:
        client.set(f"{PREFIX}result:{task_id}", "{}")


def test_an_empty_key_space_shows_nothing_and_other_prefixes_are_not_looked_at(
        client: redis.Redis) -> None:
    client.hset("ta:task:x", "status", "queued")
    found = take(client, PREFIX)
    assert (found.alike, found.depths, found.hands, found.not_taken) == ([], [], [], "")
    assert found.asked_ns <= found.at_ns


@pytest.mark.parametrize(("status", "ways", "seen"), [
    ("queued", {"entry": 5}, {"entries": 1}),
    ("running", {"entry": 4}, {"strays": 1}),
    ("retrying", {"member": True}, {"members": 1}),
    ("queued", {"entry": 5, "member": True}, {"entries": 1, "members": 1}),
    ("dead_lettered", {"letters": 2}, {"letters": 2}),
    ("succeeded", {"result": True}, {"has_result": True}),
    ("", {}, {})])
def test_what_leads_to_a_task_and_belongs_to_it_is_counted(
        client: redis.Redis, status: str, ways: dict[str, Any], seen: dict[str, Any]) -> None:
    task(client, "one", status, **ways)
    assert take(client, PREFIX).alike == [Alike(status=status, count=1, task_ids=["one"], **seen)]


def test_an_entry_and_a_member_of_no_task_are_seen(client: redis.Redis) -> None:
    client.xadd(f"{PREFIX}stream:default:p1", {"task_id": "one"})
    client.zadd(f"{PREFIX}retry:schedule", {"two": 5})
    assert take(client, PREFIX).alike == [
        Alike(status=ABSENT, count=1, task_ids=["two"], members=1),
        Alike(status=ABSENT, count=1, task_ids=["one"], entries=1)]


def test_the_expiry_of_a_dead_lettered_task_alone_is_told(client: redis.Redis) -> None:
    for task_id, status in (("one", "dead_lettered"), ("two", "succeeded")):
        task(client, task_id, status)
        client.expire(f"{PREFIX}task:{task_id}", 100)
    assert take(client, PREFIX).alike == [
        Alike(status="dead_lettered", count=1, task_ids=["one"], expires=True),
        Alike(status="succeeded", count=1, task_ids=["two"])]


def test_idempotency_records_are_told_by_the_task_that_they_name(client: redis.Redis) -> None:
    task(client, "one", "queued", entry=5)
    for key, state in (("default:k:1", "processing"), ("default:k2", "completed")):
        client.set(f"{PREFIX}idempotency:{key}", json.dumps({"task_id": "one", "state": state}))
    client.set(f"{PREFIX}idempotency:default:k3", "no JSON")
    (alike,) = take(client, PREFIX).alike
    assert alike.record == "completed,processing"


def test_tasks_that_are_alike_are_counted_and_few_are_named(client: redis.Redis) -> None:
    for number in range(700):
        task(client, f"{number:032x}", "queued", entry=5)
    (alike,) = take(client, PREFIX).alike
    assert (alike.count, alike.task_ids) == (700, [f"{n:032x}" for n in range(SHOWN)])


def test_the_depth_is_told_for_each_queue_with_members_or_a_field(client: redis.Redis) -> None:
    task(client, "one", "pending", member=True)
    task(client, "two", "retrying", member=True, queue="other")
    client.hset(f"{PREFIX}retry:depth", mapping={"default": 1, "gone": 2, "odd": "many"})
    assert take(client, PREFIX).depths == [
        Depth(queue="default", members=1, said=1), Depth(queue="gone", members=0, said=2),
        Depth(queue="odd", members=0, said=-1), Depth(queue="other", members=1, said=None)]


def test_what_is_pending_is_summed_over_the_levels_by_consumer(client: redis.Redis) -> None:
    client.hset(f"{PREFIX}worker:w-1", "concurrency", 4)
    for level in (1, 2):
        stream = f"{PREFIX}stream:default:p{level}"
        client.xgroup_create(stream, "workers", "0", mkstream=True)
        client.xgroup_createconsumer(stream, "workers", "idle.00000000")
        for _ in range(level):
            client.xadd(stream, {"task_id": "one"})
        client.xreadgroup("workers", "w-1.0123abcd", {stream: ">"})
    assert take(client, PREFIX).hands == [
        Hands(consumer="w-1.0123abcd", pending=3, concurrency=4)]


def test_no_payload_and_no_key_of_a_client_is_kept(client: redis.Redis) -> None:
    task(client, "one", "queued", entry=5)
    assert "secret" not in str(take(client, PREFIX))


def test_the_script_writes_nothing(client: redis.Redis) -> None:
    task(client, "one", "queued", entry=5)
    client.config_set("maxmemory", 1)
    try:
        assert take(client, PREFIX).alike
    finally:
        client.config_set("maxmemory", 0)


def test_a_key_of_the_wrong_type_is_the_servers_error(client: redis.Redis) -> None:
    client.set(f"{PREFIX}retry:schedule", 1)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        take(client, PREFIX)


def test_snapshots_are_found_among_the_records_of_a_history() -> None:
    snapshot = Snapshot(at_ns=2, asked_ns=1)
    assert taken([1, snapshot, "x"]) == [snapshot]

"""The audit: every key of a real key space is counted once, among those that are like it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from dtq_conformance.audit import AT_ONCE, SHOWN, audit
from dtq_conformance.key_table import KeyGroup
from dtq_conformance.lab import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture
def client(lab: Lab) -> Iterator[Any]:
    client = lab.broker.connect()
    yield client
    client.close()


@pytest.fixture
def prefix() -> str:
    """One that a glob would take for a pattern."""
    return f"t[{secrets.token_hex(4)}]*:"


def groups_of(client: Any, prefix: str, row: str) -> list[KeyGroup]:
    return [group for group in audit(client, prefix).groups if group.row == row]


def test_an_empty_key_space_has_no_group(client: Any, prefix: str) -> None:
    client.set("elsewhere", 1)
    assert audit(client, prefix).groups == []


def test_more_keys_than_one_pipeline_are_counted_and_few_are_named(client: Any,
                                                                   prefix: str) -> None:
    ids = [f"{number:032x}" for number in range(2 * AT_ONCE + 1)]
    for task_id in ids:
        client.hset(f"{prefix}task:{task_id}", "status", "succeeded")
        client.expire(f"{prefix}task:{task_id}", 100)
    (group,) = groups_of(client, prefix, "task:<task_id>")
    assert (group.count, group.expires, group.state) == (len(ids), True, "succeeded")
    assert group.task_ids == ids[:SHOWN]
    assert group.names == [f"task:{task_id}" for task_id in ids[:SHOWN]]


def test_records_differ_by_state_expiry_and_letter(client: Any, prefix: str) -> None:
    for number, (status, expires) in enumerate([
            ("succeeded", True), ("succeeded", False), ("dead_lettered", False),
            ("dead_lettered", False)]):
        key = f"{prefix}task:{number:032x}"
        client.hset(key, "status", status)
        if expires:
            client.expire(key, 100)
    client.xadd(f"{prefix}stream:dead-letter", {"task_id": f"{2:032x}"})
    found = {(group.state, group.expires, group.has_letter): group.task_ids
             for group in groups_of(client, prefix, "task:<task_id>")}
    assert found == {("succeeded", True, False): [f"{0:032x}"],
                     ("succeeded", False, False): [f"{1:032x}"],
                     ("dead_lettered", False, True): [f"{2:032x}"],
                     ("dead_lettered", False, False): [f"{3:032x}"]}


def test_streams_with_entries_are_apart_from_empty_ones(client: Any, prefix: str) -> None:
    for level in range(10):
        client.xgroup_create(f"{prefix}stream:default:p{level}", "workers", "0", mkstream=True)
    client.xadd(f"{prefix}stream:default:p3", {"task_id": "a" * 32})
    client.xadd(f"{prefix}stream:default:p3", {"task_id": "b" * 32})
    client.xreadgroup("workers", "w.00000001", {f"{prefix}stream:default:p3": ">"}, count=1)
    found = sorted(groups_of(client, prefix, "stream:<queue>:p<level>"), key=lambda g: g.count)
    assert [(g.count, g.members, g.pending) for g in found] == [(1, 2, 1), (9, 0, 0)]
    assert found[0].task_ids == ["a" * 32, "b" * 32]


def test_the_schedule_names_its_tasks(client: Any, prefix: str) -> None:
    client.zadd(f"{prefix}retry:schedule", {"a" * 32: 1, "b" * 32: 2})
    (group,) = groups_of(client, prefix, "retry:schedule")
    assert (group.members, group.task_ids) == (2, ["a" * 32, "b" * 32])


def test_an_idempotency_record_tells_its_state(client: Any, prefix: str) -> None:
    values = {"one": json.dumps({"state": "processing"}), "two": "no JSON", "three": "[]"}
    for name, value in values.items():
        client.set(f"{prefix}idempotency:default:{name}", value)
    assert sorted(group.state for group in groups_of(
        client, prefix, "idempotency:<queue>:<key>")) == [
        "not JSON", "not an object", "processing"]


def test_a_key_that_no_row_explains_is_told_by_name_and_type(client: Any, prefix: str) -> None:
    client.rpush(f"{prefix}cancelled", "x", "y")
    client.set(f"{prefix}queues", "not a set")
    (odd,) = groups_of(client, prefix, "")
    assert (odd.names, odd.type, odd.members) == (["cancelled"], "list", 2)
    (wrong,) = groups_of(client, prefix, "queues")
    assert wrong.type == "string"

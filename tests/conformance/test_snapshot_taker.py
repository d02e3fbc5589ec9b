"""The taker of snapshots: while its block runs, at drawn instants, on the lab's own broker."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from dtq_conformance import snapshot_taker
from dtq_conformance.lab import Lab
from dtq_conformance.snapshot_taker import SnapshotTaker
from dtq_conformance.waiting import wait_for


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


def fill(lab: Lab, count: int) -> None:
    with lab.broker.connect() as client:
        client.flushdb()
        for number in range(count):
            client.hset(f"{lab.broker.prefix}task:{number:032x}", "status", "queued")


def test_one_is_taken_at_the_beginning_several_meanwhile_and_one_at_the_end(lab: Lab) -> None:
    fill(lab, 3)
    with SnapshotTaker(lab.broker, seed=1) as taker:
        wait_for(lambda: len(taker.records) >= 3, reason="three snapshots", limit_s=20)
        fill(lab, 7)
        before = len(taker.records)
    assert len(taker.records) > before
    assert [alike.count for alike in taker.records[0].alike] == [3]
    assert [alike.count for alike in taker.records[-1].alike] == [7]


def test_while_the_broker_is_away_none_is_taken_and_afterwards_again(lab: Lab) -> None:
    with SnapshotTaker(lab.broker, seed=1) as taker:
        wait_for(lambda: taker.records, reason="a snapshot", limit_s=20)
        lab.broker.kill()
        before = len(taker.records)
        lab.broker.restart()
        wait_for(lambda: len(taker.records) > before, reason="another snapshot", limit_s=20)
    assert not any(record.not_taken for record in taker.records)


def test_a_key_space_that_cannot_be_read_is_told_with_the_reason(lab: Lab) -> None:
    with lab.broker.connect() as client:
        client.flushdb()
        client.set(f"{lab.broker.prefix}retry:schedule", 1)
        with SnapshotTaker(lab.broker, seed=1) as taker:
            pass
        client.flushdb()
    (record,) = taker.records
    assert "WRONGTYPE" in record.not_taken


def test_a_visited_server_with_many_keys_is_not_held_up(
        lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lab, 5)
    visited = replace(lab.broker, owned=False)
    monkeypatch.setattr(snapshot_taker, "MOST_KEYS", 4)
    with SnapshotTaker(visited, seed=1) as taker:
        pass
    assert "is not ours and has 5 keys" in taker.records[0].not_taken
    monkeypatch.setattr(snapshot_taker, "MOST_KEYS", 5)
    with SnapshotTaker(visited, seed=1) as taker:
        pass
    assert [alike.count for alike in taker.records[0].alike] == [5]


def test_the_instants_are_drawn_from_the_seed(lab: Lab) -> None:
    pauses = [SnapshotTaker(lab.broker, seed=seed)._random.random() for seed in (1, 1, 2)]
    assert pauses[0] == pauses[1] != pauses[2]
    assert pauses[0] == random.Random("snapshots 1").random()

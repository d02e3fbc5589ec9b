"""Huey as a peer: what is left, by its results, and a real run."""

from __future__ import annotations

import pytest
from dtq_load.bench.peer import Size
from dtq_load.bench.peers.huey import PEER, RESULTS, left, worker
from dtq_load.bench.stand import Stand

from tests.load import peer_run


def test_what_has_no_result_is_left_wherever_it_is(stand: Stand) -> None:
    stand.clear()
    stand.redis.hset(RESULTS, mapping={"a": "1", "b": "2"})
    assert left(stand.redis, 5) == 3


def test_one_process_has_threads_for_slots_and_several_have_one_each() -> None:
    assert " ".join(worker(Size(1, 4))).count("-k thread -w 4 ") == 1
    assert " ".join(worker(Size(4, 1))).count("-k process -w 4 ") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
@pytest.mark.parametrize("size", [Size(1, 3), Size(2, 1)], ids=str)
def test_what_a_killed_worker_held_is_left(stand: Stand, size: Size) -> None:
    peer_run.counts_what_it_held(stand, PEER, size)

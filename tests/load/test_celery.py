"""Celery as a peer: what is left, by its results, and a real run."""

from __future__ import annotations

import pytest
from dtq_load.bench.peer import Size
from dtq_load.bench.peers.celery import PEER, left, worker
from dtq_load.bench.stand import Stand

from tests.load import peer_run


def test_what_has_no_result_is_left_wherever_it_is(stand: Stand) -> None:
    stand.clear()
    assert left(stand.redis, 5) == 5
    stand.redis.rpush("celery", "a task")
    stand.redis.execute_command("COPY", "celery", "celery-task-meta-1", "DB", 1)
    assert left(stand.redis, 5) == 4


def test_one_slot_is_a_process_and_several_are_threads() -> None:
    assert " ".join(worker(Size(2, 1))).count("-P prefork -c 2 ") == 1
    assert " ".join(worker(Size(1, 4))).count("-P threads -c 4 ") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
@pytest.mark.parametrize("size", [Size(2, 1), Size(1, 3)], ids=str)
def test_what_a_killed_worker_held_is_left(stand: Stand, size: Size) -> None:
    peer_run.counts_what_it_held(stand, PEER, size)

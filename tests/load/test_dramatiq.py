"""Dramatiq as a peer: what is left, by its messages, and a real run."""

from __future__ import annotations

import pytest
from dtq_load.bench.peer import Size
from dtq_load.bench.peers.dramatiq import MESSAGES, PEER, left
from dtq_load.bench.stand import Stand

from tests.load import peer_run


def test_what_is_not_acknowledged_is_left(stand: Stand) -> None:
    stand.clear()
    stand.redis.hset(MESSAGES, mapping={"a": "1", "b": "2"})
    assert left(stand.redis, 5) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
def test_what_a_killed_worker_held_is_left(stand: Stand) -> None:
    peer_run.counts_what_it_held(stand, PEER, Size(1, 3))

"""taskiq as a peer: what is left of its stream, and a real run."""

from __future__ import annotations

import pytest
from dtq_load.bench.peer import Size
from dtq_load.bench.peers.taskiq import PEER, STREAM, left
from dtq_load.bench.stand import Stand

from tests.load import peer_run


def test_what_is_pending_is_left_and_what_is_acknowledged_is_not(stand: Stand) -> None:
    stand.clear()
    stand.redis.xgroup_create(STREAM, "taskiq", id="$", mkstream=True)
    ids = [stand.redis.xadd(STREAM, {"data": number}) for number in range(5)]
    assert left(stand.redis, 5) == 5
    stand.redis.xreadgroup("taskiq", "somebody", {STREAM: ">"}, count=3)
    assert left(stand.redis, 5) == 5
    stand.redis.xack(STREAM, "taskiq", *ids[:2])
    assert left(stand.redis, 5) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
@pytest.mark.usefixtures("python_peers")
def test_what_a_killed_worker_held_is_left(stand: Stand) -> None:
    peer_run.counts_what_it_held(stand, PEER, Size(1, 3))

"""This engine as a peer: a real run, and what it holds is left."""

from __future__ import annotations

import pytest
from dtq_load.bench.peer import Size
from dtq_load.bench.peers.dtq import PEER
from dtq_load.bench.stand import Stand

from tests.load import peer_run


@pytest.mark.slow
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
def test_what_a_killed_worker_held_is_left(stand: Stand) -> None:
    peer_run.counts_what_it_held(stand, PEER, Size(1, 3))

"""Dramatiq as a peer: what is left, by its messages, and a real run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from dtq_load.bench.peer import Size
from dtq_load.bench.peers.dramatiq import MESSAGES, PEER, left
from dtq_load.bench.stand import Stand

from tests.load import peer_run


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with peer_run.stand_in(tmp_path_factory.mktemp("dramatiq")) as stand:
        yield stand


@pytest.fixture
def _installed(need: Callable[[object, str], None]) -> None:
    need(find_spec("dramatiq"), "Dramatiq: pip install 'dtq-contract[bench]'")


def test_what_is_not_acknowledged_is_left(stand: Stand) -> None:
    stand.clear()
    stand.redis.hset(MESSAGES, mapping={"a": "1", "b": "2"})
    assert left(stand.redis, 5) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_what_a_killed_worker_held_is_left(stand: Stand) -> None:
    peer_run.counts_what_it_held(stand, PEER, Size(1, 3))

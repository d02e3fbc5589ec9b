"""Every peer says of itself what the table shows, and its command lines can be made."""

from __future__ import annotations

import pytest
from dtq_load.bench.peer import NotInstalled, Peer, python_version
from dtq_load.bench.peers import PEERS

URL = "redis://127.0.0.1:6379/0"


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_a_peer_states_its_settings_and_its_guarantee(peer: Peer) -> None:
    for sentence in (peer.settings, peer.guarantee):
        assert sentence.endswith(".")
        assert len(sentence.split()) >= 8
    assert peer.size in peer.sweep
    assert len(set(peer.sweep)) == len(peer.sweep) >= 2


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_sizes_make_different_workers(peer: Peer) -> None:
    assert len({tuple(peer.worker(size)) for size in peer.sweep}) == len(peer.sweep)
    assert all(isinstance(value, str) for value in peer.environment(URL).values())


def test_this_engine_is_the_first() -> None:
    assert next(iter(PEERS)) == "dtq"


def test_a_package_that_is_not_there_is_named_with_what_to_do() -> None:
    with pytest.raises(NotInstalled, match=r"no-such-queue is not installed here: pip install"):
        python_version("no-such-queue")

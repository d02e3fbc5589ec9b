"""The peers of the benchmark, one file each, in the order in which they are shown; this engine is
the first."""

from __future__ import annotations

from dtq_load.bench.peer import Peer
from dtq_load.bench.peers import dtq

PEERS: dict[str, Peer] = {peer.name: peer for peer in (
    dtq.PEER,
)}
"""Every peer by its name."""

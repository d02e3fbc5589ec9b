"""The peers of the benchmark, one file each, in the order in which they are shown; this engine is
the first."""

from __future__ import annotations

from dtq_load.bench.peer import Peer
from dtq_load.bench.peers import bullmq, celery, dramatiq, dtq, huey, taskiq

PEERS: dict[str, Peer] = {module.PEER.name: module.PEER for module in (
    dtq, huey, dramatiq, taskiq, celery, bullmq,
)}
"""Every peer by its name."""

"""The server's memory is at its limit: it refuses what needs more, and evicts nothing.

For brokers of the lab's own.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen: with which word a write of the harness's own is refused."""
    del entry
    broker = stage.bench.lab.broker
    broker.configure("maxmemory-policy", "noeviction")
    broker.configure("maxmemory", "1")
    return Bite(detail={"refused": [stage.bench.keyspace.refusal()]})


def _end(stage: Stage, bite: Bite) -> None:
    """Seen: with which word it is refused at last; that joins what was seen at first."""
    bite.detail["refused"].append(stage.bench.keyspace.refusal())
    stage.bench.lab.broker.configure("maxmemory", "0")


KIND = FaultKind("exhaust_memory", "out_of_memory", _begin, _end)

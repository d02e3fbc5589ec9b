"""The server's memory is at its limit: it refuses what needs more, and evicts nothing.

For brokers of the lab's own.
"""

from __future__ import annotations

from dtq_chaos import refusing
from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, _entry: Entry) -> Bite:
    return refusing.begin(stage, {"maxmemory-policy": "noeviction", "maxmemory": "1"})


def _end(stage: Stage, bite: Bite) -> None:
    refusing.end(stage, bite, {"maxmemory": "0"})


KIND = FaultKind("exhaust_memory", "out_of_memory", _begin, _end)

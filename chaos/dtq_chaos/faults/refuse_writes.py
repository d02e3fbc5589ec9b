"""The server answers, and refuses every write: it has fewer replicas than it is to have.

No lease can be renewed meanwhile, so to the holders it is as if the broker were away. For brokers
of the lab's own.
"""

from __future__ import annotations

from dtq_chaos import refusing
from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

SETTING = "min-replicas-to-write"


def _begin(stage: Stage, _entry: Entry) -> Bite:
    return refusing.begin(stage, {SETTING: "1"})


def _end(stage: Stage, bite: Bite) -> None:
    refusing.end(stage, bite, {SETTING: "0"})


KIND = FaultKind("refuse_writes", "broker_away", _begin, _end)

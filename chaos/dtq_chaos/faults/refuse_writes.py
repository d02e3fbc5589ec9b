"""The server answers, and refuses every write: it has fewer replicas than it is to have.

No lease can be renewed meanwhile, so to the holders it is as if the broker were away. For brokers
of the lab's own.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

SETTING = "min-replicas-to-write"


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen: with which word a write of the harness's own is refused."""
    del entry
    stage.bench.lab.broker.configure(SETTING, "1")
    return Bite(detail={"refused": [stage.bench.keyspace.refusal()]})


def _end(stage: Stage, bite: Bite) -> None:
    """Seen: with which word it is refused at last; that joins what was seen at first."""
    bite.detail["refused"].append(stage.bench.keyspace.refusal())
    stage.bench.lab.broker.configure(SETTING, "0")


KIND = FaultKind("refuse_writes", "broker_away", _begin, _end)

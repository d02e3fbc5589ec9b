"""The server forgets the consumer groups of all levels at once, while tasks are in hand and wait.

The streams and the entries stay. Unlike `drop_group` it is over at once, whoever has what in hand.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen in the same transaction: the groups before and after it, and what they led to."""
    del entry  # it has no parameters
    return Bite(detail=stage.bench.keyspace.forget_groups())


KIND = FaultKind("forget_groups", "group_dropped", _begin)

"""The harness adds an entry of a task that has no record, as it is left when a record is lost or
has expired.

Parameters: task_id. Its payload is one that a handler could execute.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Return when the entry is gone from its stream, or was not taken out of it in time."""
    keyspace, task_id = stage.bench.keyspace, entry.parameters["task_id"]
    keyspace.forge_entry(task_id, {"steps": [], "label": "orphan"})
    stage.await_quietly(lambda: not keyspace.entries_of(task_id), reason="the entry to be read")
    return Bite(detail={"task_id": task_id, "entries": keyspace.entries_of(task_id)})


KIND = FaultKind("forge_entry", "forged", _begin)

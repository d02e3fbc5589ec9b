"""The consumer groups of the streams are lost, with all that is pending in them.

Parameters: worker, that has a task in hand whose handler runs. The streams and the entries stay:
workers find no group, make it anew at the beginning, and read as new what is being executed.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen when the broker shows a group again in which what was in hand is in somebody's hands,
    or when that is not there any more."""
    keyspace, worker = stage.bench.keyspace, stage.worker(entry.parameters["worker"])
    in_hand = keyspace.in_hand(worker.name)
    groups = keyspace.drop_groups()

    def is_back() -> bool:
        held = [task_id for each in stage.bench.workers for task_id in keyspace.in_hand(each.name)]
        return all(task_id in held or not keyspace.entries_of(task_id) for task_id in in_hand)

    stage.await_quietly(is_back, reason="the tasks to be in somebody's hands in the new group")
    return Bite([worker.pid], {"worker": worker.name, "in_hand": in_hand, "groups": groups,
                               "held_again": keyspace.in_hand(worker.name)})


KIND = FaultKind("drop_group", "group_dropped", _begin)

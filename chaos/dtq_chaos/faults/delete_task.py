"""The harness itself removes an accepted task from the server: the canary's fault.

Parameters: label, of the tasks of which the first that waits is removed.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    bench = stage.bench
    for task_id, submission in bench.submissions.items():
        if (submission.payload["label"] == entry.parameters["label"]
                and bench.keyspace.delete_task(task_id)):
            return Bite(detail={"task_id": task_id})
    return Bite(detail={"task_id": None})


KIND = FaultKind("delete_task", "deleted", _begin)

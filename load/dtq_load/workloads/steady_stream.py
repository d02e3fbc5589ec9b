"""Each user submits ten tasks a second for as long as the run lasts; nothing befalls anybody."""

from __future__ import annotations

import random

from dtq_conformance.target import Submission

from dtq_load.workload import Workload


def submission(source: random.Random, number: int) -> Submission:
    """A task of 20 to 80 ms; the priorities come in turn."""
    return Submission(task_id=f"{source.getrandbits(128):032x}", priority=number % 10,
                      payload={"steps": [{"sleep": source.randint(20, 80)}], "label": ""})


WORKLOAD = Workload(
    name="steady_stream",
    story="Each user submits ten tasks of 20 to 80 ms a second, on all priorities, to two "
          "workers; without faults.",
    clauses=("DLV-01", "DLV-02", "DLV-07", "DLV-09", "RETRY-01", "RETRY-02", "STOP-01",
             "TASK-01"),
    submission=submission, users=10, seconds=10, pause_s=0.1, workers=2, concurrency=8)

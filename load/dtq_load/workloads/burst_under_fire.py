"""A burst of 2,000 tasks over all ten priorities; a worker is killed in it with its hands full."""

from __future__ import annotations

import random

from dtq_conformance.bench import Bench
from dtq_conformance.target import Submission

from dtq_load.fire import hands_full_at_the_kill, kill_with_hands_full
from dtq_load.workload import Load, Workload

TASKS = 2_000
TASK_MS = 50


def submission(source: random.Random, number: int) -> Submission:
    """A task of 50 ms; the priorities come in turn."""
    return Submission(task_id=f"{source.getrandbits(128):032x}", priority=number % 10,
                      payload={"steps": [{"sleep": TASK_MS}], "label": ""})


def fire(bench: Bench, load: Load) -> None:
    """Kill a worker after a quarter of the starts: at the 500th of 2,000 tasks."""
    kill_with_hands_full(bench, load, start=max(1, (load.tasks or TASKS) // 4))


WORKLOAD = Workload(
    name="burst_under_fire",
    story="2,000 tasks of 50 ms on all priorities at once; of two workers one is killed with its "
          "hands full at the 500th start, and replaced.",
    clauses=("DLV-01", "DLV-02", "DLV-03", "DLV-05", "DLV-07", "DLV-09", "RETRY-01", "RETRY-02",
             "STOP-01", "TASK-01"),
    submission=submission, tasks=TASKS, users=20, workers=2, concurrency=8, fire=fire,
    marks=(hands_full_at_the_kill,))

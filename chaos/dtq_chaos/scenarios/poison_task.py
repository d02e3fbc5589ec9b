"""A task kills its worker every time it runs; it ends as a dead letter, its neighbours do not."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import worker_killed_itself
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry

MAX_ATTEMPTS = 3
BYSTANDERS = 20


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # the fault is in the work itself
    return []


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.start_worker(6)
    if stage.with_faults:
        bench.submit({"sleep": 80}, {"kill": True}, label="poison", max_attempts=MAX_ATTEMPTS)
    bench.submit_many(BYSTANDERS, {"sleep": 100}, label="bystander", max_attempts=MAX_ATTEMPTS)


def _afterwards(stage: Stage) -> None:
    """Each death of the worker costs a lease; they are all waited for before recovery counts."""
    poison = [task_id for task_id, submission in stage.bench.submissions.items()
              if submission.payload["label"] == "poison"]
    stage.bench.await_all_terminal(poison, limit_s=20)


SCENARIO = Scenario(
    "poison_task",
    "A task kills its worker every time it runs; it ends as a dead letter, its 20 neighbours "
    "succeed.",
    ("DLV-01", "DLV-11", "DLV-31", "DLQ-01", "DLQ-04", "RETRY-01"),
    _plan, _set_up, (worker_killed_itself(times=MAX_ATTEMPTS),), _afterwards, needs=("retry",))

"""The harness itself deletes an accepted task: the judge must find it lost, or is no judge."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import task_deleted
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="delete_task", when=When(event="at_once"),
                  parameters={"label": "deleted"})]


def _set_up(stage: Stage) -> None:
    stage.bench.submit(label="deleted")
    stage.bench.submit_many(5, label="kept")


def _afterwards(stage: Stage) -> None:
    stage.bench.start_worker()


SCENARIO = Scenario(
    "canary",
    "The harness itself deletes an accepted task: the judge must find it lost.",
    ("DLV-01", "TASK-01"), _plan, _set_up, (task_deleted(),), _afterwards, expects="violated",
    needs=("redis-schema",))

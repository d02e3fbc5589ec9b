"""The holder of one task is killed twice in a row; a third worker executes it to the end."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import killed_mid_handler, same_task
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # the holder is killed at the task's first and at its second start
    return [Entry(fault="kill_worker", when=When(event="start", label="victim", count=count),
                  parameters={"holder_of": "victim"}) for count in (1, 2)]


def _set_up(stage: Stage) -> None:
    stage.bench.start_workers(3, 2)
    stage.bench.submit({"sleep": 600}, label="victim")
    stage.bench.submit_many(6, {"sleep": 40}, label="bystander")


SCENARIO = Scenario(
    "worker_killed_twice",
    "The holder of one task is killed twice in a row; a third worker executes it to the end.",
    ("DLV-01", "DLV-03", "DLV-04", "DLV-05", "RETRY-02", "DUR-01"),
    _plan, _set_up, (killed_mid_handler(times=2), same_task(times=2)))

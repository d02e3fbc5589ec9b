"""A worker is killed while a handler runs; another worker executes the task again."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import killed_mid_handler
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # one kill, as soon as the handler has started
    return [Entry(fault="kill_worker", when=When(event="start", label="victim"),
                  parameters={"holder_of": "victim"})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_workers(2, 2)
    stage.bench.submit({"sleep": 600}, label="victim")
    stage.bench.submit_many(6, {"sleep": 40}, label="bystander")


SCENARIO = Scenario(
    "worker_killed_mid_handler",
    "A worker is killed while a handler runs; another worker executes the task again.",
    ("DLV-01", "DLV-02", "DLV-03", "DLV-05", "DLV-07", "RETRY-01", "RETRY-02", "DUR-01"),
    _plan, _set_up, (killed_mid_handler(),))

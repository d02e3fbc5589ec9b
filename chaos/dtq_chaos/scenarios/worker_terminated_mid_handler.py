"""A worker is asked to stop while handlers run that end within its drain limit."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import terminated_mid_handler
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="terminate_worker", when=When(event="start", label="running", count=3),
                  parameters={"worker": "worker-1"})]


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.submit_many(3, {"sleep": 900}, label="running")
    bench.submit_many(5, {"sleep": 20}, label="waiting", priority=1)
    bench.start_worker(3)


def _afterwards(stage: Stage) -> None:
    stage.bench.start_worker(3)


SCENARIO = Scenario(
    "worker_terminated_mid_handler",
    "A worker is asked to stop while handlers run that end within its drain limit.",
    ("STOP-01", "STOP-02", "DLV-01", "RETRY-01"),
    _plan, _set_up, (terminated_mid_handler(),), _afterwards)

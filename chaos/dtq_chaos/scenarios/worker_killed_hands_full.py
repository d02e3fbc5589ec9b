"""A worker is killed with as many tasks in hand as it can hold; all of them run elsewhere."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import hands_full
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

CONCURRENCY = 6


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="kill_worker",
                  when=When(event="start", label="load", count=draw.randrange(6, 13)),
                  parameters={"worker": "worker-1"})]


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.submit_many(30, {"sleep": 250}, label="load")
    bench.start_worker(CONCURRENCY)


def _afterwards(stage: Stage) -> None:
    stage.bench.start_worker(CONCURRENCY)


SCENARIO = Scenario(
    "worker_killed_hands_full",
    "A worker is killed with as many tasks in hand as it can hold; all of them run elsewhere.",
    ("DLV-01", "DLV-03", "DLV-05", "DLV-07", "DLV-12", "RETRY-01", "RETRY-02", "KEY-07", "DUR-01"),
    _plan, _set_up, (hands_full(),), _afterwards, needs=("redis-schema",))

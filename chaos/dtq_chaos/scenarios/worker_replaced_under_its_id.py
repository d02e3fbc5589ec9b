"""Another process is started under the id of a worker, as a rolling deployment does.

The old one notices, finishes what it has begun and exits; it takes nothing more, and no task is in
two hands.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import has_a_namesake
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

CONCURRENCY = 2


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="start_namesake", when=When(event="start", label="victim"),
                  parameters={"worker": "worker-1", "concurrency": CONCURRENCY})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_worker(CONCURRENCY)
    stage.bench.submit({"sleep": 2_500}, label="victim")


def _afterwards(stage: Stage) -> None:
    """More than the new one can do at once, so that the old one would find work to take."""
    stage.bench.submit_many(20, {"sleep": 150}, label="after")
    if stage.with_faults:
        stage.await_quietly(lambda: not stage.worker("worker-1").process.alive,
                            reason="the old process to end")


SCENARIO = Scenario(
    "worker_replaced_under_its_id",
    "Another process is started under a worker's id: the old one finishes its work and exits.",
    ("DLV-01", "DLV-05", "DLV-07", "DLV-28", "RETRY-02"),
    _plan, _set_up, (has_a_namesake(mid_handler=True),), _afterwards, needs=("redis-schema",))

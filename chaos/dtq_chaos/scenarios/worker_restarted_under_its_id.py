"""A worker is killed and comes back under the same id; it holds nothing of what the dead one held.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import killed_mid_handler
from dtq_chaos.marks_of_delivery import came_back_under_its_id
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="kill_worker", when=When(event="start", label="victim", count=2),
                  parameters={"worker": "worker-1"})]


def _set_up(stage: Stage) -> None:
    """The handler of the first attempt lasts until its worker is killed."""
    bench = stage.bench
    bench.start_worker(2)
    held_ms = 60_000 if stage.with_faults else 200
    bench.submit_many(2, {"sleep": held_ms, "until_attempt": 1}, label="victim", max_attempts=2)


def _afterwards(stage: Stage) -> None:
    bench = stage.bench
    if stage.with_faults:
        bench.start_worker(2, worker_id=bench.workers[0].worker_id)
    bench.submit_many(4, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "worker_restarted_under_its_id",
    "A worker is killed and comes back under its id; what the dead one held is redelivered to it.",
    ("DLV-01", "DLV-03", "DLV-05", "RETRY-01", "RETRY-02"),
    _plan, _set_up, (killed_mid_handler(), came_back_under_its_id()), _afterwards,
    needs=("redis-schema",))

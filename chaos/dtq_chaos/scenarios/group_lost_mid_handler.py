"""The consumer groups are lost while a task is being executed; it stays with its holder.

The idle worker makes the group anew, from the beginning of the stream, and reads the entry as new.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import group_lost_mid_handler
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="drop_group", when=When(event="start", label="idle before", count=1),
                  parameters={"worker": "worker-1"})]


def _set_up(stage: Stage) -> None:
    """The idle worker stands still until the other has its hands full, and has worked before the
    group is lost, so that it is there to make it anew."""
    bench = stage.bench
    bench.start_worker(2)
    with stage.standing_by(1, 2):
        for max_attempts in (1, 3):
            bench.submit({"sleep": 4_000}, label="victim", max_attempts=max_attempts)
        bench.await_witness("start", label="victim", count=2)
    bench.submit({"sleep": 10}, label="idle before")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(6, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "group_lost_mid_handler",
    "The consumer groups are lost while a task is being executed; it stays with its holder.",
    ("DLV-01", "DLV-05", "DLV-06", "DLV-07", "RETRY-02", "WORK-18"),
    _plan, _set_up, (group_lost_mid_handler(),), _afterwards, needs=("redis-schema",))

"""An entry stands in a stream whose task has no record; it is put away and never executed."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import forged_entry_was_read
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="forge_entry", when=When(event="end", label="before", count=2),
                  parameters={"task_id": f"{draw.getrandbits(128):032x}"})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_worker(2)
    stage.bench.submit_many(3, {"sleep": 20}, label="before")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(3, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "entry_without_a_record",
    "An entry stands in a stream whose task has no record; it is put away and never executed.",
    ("DLV-01", "DLV-09", "DLV-33"),
    _plan, _set_up, (forged_entry_was_read(),), _afterwards, needs=("redis-schema",))

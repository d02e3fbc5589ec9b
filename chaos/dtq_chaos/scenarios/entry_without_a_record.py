"""An entry stands in a stream whose task has no record; it is put away and never executed."""

from __future__ import annotations

import random

from dtq_conformance.history import Fault

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
    """The letter that was made of it is asked back, in vain."""
    for record in list(stage.bench.records):
        if isinstance(record, Fault) and (record.effect, record.phase) == ("forged", "bit"):
            stage.bench.requeue(record.detail["task_id"])
    stage.bench.submit_many(3, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "entry_without_a_record",
    "An entry stands in a stream whose task has no record; it is put away and never executed, nor "
    "requeued.",
    ("DLV-01", "DLV-09", "DLV-33", "DLQ-12"),
    _plan, _set_up, (forged_entry_was_read(),), _afterwards, needs=("redis-schema", "dlq"))

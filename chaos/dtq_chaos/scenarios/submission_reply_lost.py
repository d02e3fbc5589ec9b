"""The reply to a submission is lost; the client sends it again, and it is one task."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import sent_twice
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="lose_submission_reply", when=When(event="at_once"),
                  parameters={"link": "client", "label": "submitted",
                              "task_id": f"{draw.getrandbits(128):032x}"})]


def _set_up(stage: Stage) -> None:
    stage.bench.submit_many(3, label="bystander")


def _afterwards(stage: Stage) -> None:
    stage.bench.start_worker()


SCENARIO = Scenario(
    "submission_reply_lost",
    "The reply to a submission is lost; the client sends it again, and it is one task.",
    ("TASK-04", "DLV-01", "DLV-09"),
    _plan, _set_up, (sent_twice(of="submission"),), _afterwards, needs_toxiproxy=True,
    needs=("redis-schema",))

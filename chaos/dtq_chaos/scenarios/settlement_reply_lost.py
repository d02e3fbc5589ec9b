"""The reply to a settlement is lost; the worker sends it again, and the task ran once."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import sent_twice
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="lose_settlement_reply",
                  when=When(event="end", label="before", count=2),
                  parameters={"link": "worker-1", "worker": "worker-1",
                              "task_id": f"{draw.getrandbits(128):032x}"})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_worker(broker_url=stage.url_of("worker-1"))
    stage.bench.submit_many(2, {"sleep": 20}, label="before")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(3, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "settlement_reply_lost",
    "The reply to a settlement is lost; the worker sends it again, and the task ran once.",
    ("DLV-01", "DLV-10", "DLV-35", "STATE-02"),
    _plan, _set_up, (sent_twice(of="settlement"),), _afterwards, needs_toxiproxy=True,
    needs=("redis-schema",))

"""The server refuses every write while two workers have tasks in hand and submissions go on.

Nothing can be settled, renewed or taken for longer than a lease. Then it takes writes again, and
all goes on by itself.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_broker_trouble import refused_throughout, worked_through
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

WORKERS, CONCURRENCY, HELD = 2, 3, 4
BRIEF_MS, LONG_MS, LASTS_MS = 700, 2_800, 2_000


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="refuse_writes",
                  when=When(event="start", label="held", count=HELD))]


def _set_up(stage: Stage) -> None:
    """Both have work in hand, and one has room at least: it asks for work while writes are refused.
    Some handlers end meanwhile, some outlast it; what is delayed falls due."""
    bench = stage.bench
    for worker in bench.start_workers(WORKERS, CONCURRENCY):
        bench.await_ready(worker)
    for sleep_ms in (BRIEF_MS, LONG_MS) * (HELD // 2):
        bench.submit({"sleep": sleep_ms}, label="held")
    bench.submit_many(4, {"sleep": 20}, delay_ms=LASTS_MS // 2, label="delayed")


def _meanwhile(stage: Stage) -> None:
    stage.submit_for(LASTS_MS, label="meanwhile")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(8, {"sleep": 150}, label="after")


SCENARIO = Scenario(
    "broker_refuses_writes",
    "The server refuses every write for two seconds: refusals say so, and all goes on by itself.",
    ("WORK-15", "WORK-22", "WORK-23", "DLV-01", "DLV-02", "DLV-05", "DLV-07"),
    _plan, _set_up,
    (refused_throughout("refuse_writes", word="NOREPLICAS"),
     worked_through("refuse_writes", holders=WORKERS, ends=2)),
    _afterwards, _meanwhile, needs=("redis-schema", "status", "broker-trouble"))

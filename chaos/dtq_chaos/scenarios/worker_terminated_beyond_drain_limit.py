"""A worker is asked to stop while a handler runs that outlasts its drain limit."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import beyond_drain_limit, terminated_mid_handler
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

DRAIN_LIMIT_MS = 600


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="terminate_worker", when=When(event="start", label="long", count=2),
                  parameters={"worker": "worker-1"})]


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.submit_many(2, {"sleep": 2_000}, label="long")
    bench.start_worker(2)


def _afterwards(stage: Stage) -> None:
    stage.bench.start_worker(2)


SCENARIO = Scenario(
    "worker_terminated_beyond_drain_limit",
    "A worker is asked to stop while a handler runs that outlasts its drain limit.",
    ("STOP-01", "STOP-04", "DLV-01", "DLV-05", "RETRY-02"),
    _plan, _set_up, (terminated_mid_handler(), beyond_drain_limit()), _afterwards,
    drain_ms=DRAIN_LIMIT_MS, needs=("shutdown",))

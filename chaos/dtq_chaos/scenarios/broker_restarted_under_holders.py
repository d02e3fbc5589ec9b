"""The broker is killed while handlers run, and comes back with its data when their leases are over.

The time in which it was away counts as idle time of what is pending. Those who hold a task renew it
first; nobody is given what another one executes.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import broker_was_away
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

HOLDERS, AWAY_MS, HANDLER_MS = 2, 1_500, 6_000


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="restart_broker", when=When(event="end", label="before"),
                  parameters={"away": AWAY_MS})]


def _set_up(stage: Stage) -> None:
    """Each holder has its hands full; the worker with room, which stood still until then, is the
    first to look for work when the broker is back."""
    bench = stage.bench
    bench.start_workers(HOLDERS, 1)
    with stage.standing_by(1, 4):
        for max_attempts in (1, 3):
            bench.submit({"sleep": HANDLER_MS}, label="held", max_attempts=max_attempts)
        bench.await_witness("start", label="held", count=HOLDERS)
    bench.submit(label="before")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(6, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "broker_restarted_under_holders",
    "The broker is killed while handlers run and comes back after their leases: they keep their "
    "tasks.",
    ("DLV-01", "DLV-05", "DLV-06", "DLV-07", "RETRY-01", "RETRY-02", "WORK-19", "DUR-02"),
    _plan, _set_up, (broker_was_away(holders=HOLDERS),), _afterwards, persistence="always",
    needs=("redis-schema",))

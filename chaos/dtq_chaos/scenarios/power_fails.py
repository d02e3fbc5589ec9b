"""The power fails: the broker's file ends anywhere within its last second.

Some tasks have ended long before, some are running, wait, or are scheduled; others are submitted
within that second. What is older than it must be there, and what is there must be whole.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_durability import power_failed
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

OLD, SUBMISSIONS, AWAY_MS = 6, 12, 300


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="cut_power", when=When(event="end", label="old", count=OLD), parameters={
        "share": round(draw.uniform(0.05, 0.95), 6), "submissions": SUBMISSIONS,
        "away": AWAY_MS})]


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.start_workers(2, 2)
    old = [bench.submit({"fail": "permanent"} if number % 3 == 0 else {"sleep": 20}, label="old")
           for number in range(OLD)]
    bench.await_all_terminal(old)
    later = bench.submit(delay_ms=60_000)
    bench.cancel(later)
    bench.look(later)
    bench.submit_many(2, {"sleep": 1_500}, label="running")
    bench.submit({"sleep": 20}, delay_ms=500, label="delayed")
    bench.submit({"fail": "retryable", "until_attempt": 1}, label="retried")
    bench.submit_many(20, {"sleep": 150}, label="waiting")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(6, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "power_fails",
    "The power fails, and the broker's file ends anywhere within its last second.",
    ("DUR-04", "DUR-05", "DLV-01", "DLV-12", "DLV-13"),
    _plan, _set_up, (power_failed(),), _afterwards, persistence="everysec",
    needs=("redis-schema", "status", "cancel", "durability:power-loss"))

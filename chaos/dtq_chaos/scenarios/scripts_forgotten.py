"""The server forgets its scripts again and again, while two workers execute and more is submitted.

Many of the engine's scripts are at work then: tasks are taken, renewed, settled, retried, promoted
and put away.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_forgetting import scripts_were_forgotten
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

TIMES, LOAD, MORE = 5, 10, 14


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="flush_scripts", when=When(event="start", label="load", count=1),
                  parameters={"after": [draw.randint(3, 6) for _ in range(TIMES)],
                              "label": "load", "submissions": MORE})]


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.start_workers(2, 4)
    bench.submit({"sleep": 3_000}, label="held", max_attempts=1)
    bench.submit_many(4, {"fail": "retryable", "until_attempt": 1}, label="retried")
    bench.submit_many(3, {"sleep": 20}, delay_ms=800, label="delayed")
    bench.submit({"fail": "permanent"}, label="bad")
    bench.submit_many(LOAD, {"sleep": 150}, label="load")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(4, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "scripts_forgotten",
    "The server forgets its scripts again and again, while tasks are executed and submitted.",
    ("DLV-01", "DLV-05", "DLV-06", "STATE-02", "DLQ-01", "WORK-16", "WORK-22"),
    _plan, _set_up, (scripts_were_forgotten(times=TIMES),), _afterwards,
    needs=("redis-schema",))

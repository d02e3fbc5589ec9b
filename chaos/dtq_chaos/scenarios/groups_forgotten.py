"""The server forgets all consumer groups while tasks are in hand and more wait.

What is in hand stays with its holder, and what waits, on several levels, is executed all the same.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_forgetting import groups_were_forgotten
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

HELD, WAITING = 4, 30


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="forget_groups", when=When(event="start", label="waiting",
                                                   count=draw.randint(1, WAITING // 2)))]


def _set_up(stage: Stage) -> None:
    """Each worker has half of its hands full for longer than a lease, and passes the rest of the
    work through the other half."""
    bench = stage.bench
    bench.start_workers(2, 4)
    for max_attempts in (1, 1, 3, 3):
        bench.submit({"sleep": 2_500}, label="held", max_attempts=max_attempts)
    bench.await_witness("start", label="held", count=HELD)
    bench.submit_many(2, {"fail": "retryable", "until_attempt": 1}, label="retried")
    bench.submit_many(2, {"sleep": 20}, delay_ms=500, label="delayed")
    for number in range(WAITING):
        bench.submit({"sleep": 100}, priority=number % 10, label="waiting")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(4, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "groups_forgotten",
    "The server forgets all consumer groups while tasks are in hand and more wait.",
    ("DLV-01", "DLV-05", "DLV-06", "DLV-25", "RETRY-02", "WORK-17", "WORK-18", "WORK-22"),
    _plan, _set_up, (groups_were_forgotten(),), _afterwards, needs=("redis-schema",))

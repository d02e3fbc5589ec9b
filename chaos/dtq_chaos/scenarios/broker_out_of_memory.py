"""The server is out of memory while work is in hand, waits, and is submitted.

What ends meanwhile is settled meanwhile, and what runs on keeps its lease; what is refused is
refused in clear words; and when there is memory again, all goes on by itself.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_broker_trouble import refused_throughout, worked_through
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

WORKERS, CONCURRENCY = 2, 2
HELD_MS, LONG_MS, LASTS_MS = 800, 2_800, 2_000
RETRY_MS = 1_000
"""So long that the first retry, asked for before, falls due while memory is out."""


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="exhaust_memory",
                  when=When(event="start", label="held", count=WORKERS * CONCURRENCY))]


def _set_up(stage: Stage) -> None:
    """Hands are full with what will end well, fail, fail for good, and outlast its lease by far;
    more waits."""
    bench = stage.bench
    for worker in bench.start_workers(WORKERS, CONCURRENCY):
        bench.await_ready(worker)
    bench.submit({"fail": "retryable", "until_attempt": 1}, label="retried")
    bench.await_witness("end", label="retried")
    bench.submit({"sleep": HELD_MS}, label="held")
    bench.submit({"sleep": LONG_MS}, label="held")
    bench.submit({"sleep": HELD_MS}, {"fail": "retryable", "until_attempt": 1}, label="held")
    bench.submit({"sleep": HELD_MS}, {"fail": "permanent"}, label="held")
    bench.submit_many(6, {"sleep": 50}, label="waiting")
    bench.submit({"sleep": 20}, delay_ms=HELD_MS, label="delayed")


def _meanwhile(stage: Stage) -> None:
    """Submissions go on; at last each task is looked at."""
    stage.submit_for(LASTS_MS, label="meanwhile")
    for task_id in stage.bench.submissions:
        stage.bench.look(task_id)


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(8, {"sleep": 50}, label="after")


SCENARIO = Scenario(
    "broker_out_of_memory",
    "The server is out of memory for two seconds: what ends is settled, and all goes on by itself.",
    ("WORK-15", "WORK-21", "WORK-22", "WORK-23", "DLV-01", "DLV-02", "DLV-05", "DLV-06",
     "DLV-07"),
    _plan, _set_up,
    (refused_throughout("exhaust_memory", word="OOM"),
     worked_through("exhaust_memory", holders=WORKERS, ends=WORKERS * CONCURRENCY - 1)),
    _afterwards, _meanwhile, base_delay_ms=RETRY_MS, max_delay_ms=RETRY_MS,
    needs=("redis-schema", "status", "broker-trouble"))

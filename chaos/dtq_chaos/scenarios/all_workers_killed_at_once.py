"""All three workers are killed at once, with 500 tasks waiting and in hand; new ones finish them.

No broken engine of its own: an engine that needs a survivor to recover what the dead had in hand,
or that begins anew when it finds nobody alive, is caught by worker_killed_hands_full, too, where
nobody survives either. This story adds the size, and the time of recovery that is measured.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import all_killed
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

WORKERS, CONCURRENCY = 3, 8
TASKS, UNFINISHED = 700, 500


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="kill_all_workers",
                  when=When(event="start", label="load", count=draw.randrange(60, 121)))]


def _set_up(stage: Stage) -> None:
    """All workers begin at the same moment, and no two tasks take equally long, so that all have
    work in hand whenever they are killed."""
    bench = stage.bench
    with stage.standing_by(WORKERS, CONCURRENCY):
        for _ in range(TASKS):
            bench.submit({"sleep": bench.random.randrange(20, 61)}, label="load")


def _afterwards(stage: Stage) -> None:
    if stage.with_faults:
        stage.bench.start_workers(WORKERS, CONCURRENCY)


SCENARIO = Scenario(
    "all_workers_killed_at_once",
    "All three workers are killed at once, with 500 tasks waiting and in hand; new ones finish "
    "them.",
    ("DLV-01", "DLV-02", "DLV-03", "DLV-05", "DLV-07", "RETRY-01", "RETRY-02", "DUR-01"),
    _plan, _set_up, (all_killed(workers=WORKERS, unfinished=UNFINISHED),), _afterwards,
    needs=("redis-schema",))

"""A producer is killed between a submission and its answer: that one is unknown, none is lost.

What was answered comes to its end. What was in flight may be there or not, but not by halves: a
task that the target shows is one that gets executed.
"""

from __future__ import annotations

import random

from dtq_conformance.target import Submission

from dtq_chaos import producer
from dtq_chaos.fault import Stage
from dtq_chaos.marks import killed_mid_submission
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

TASKS, EVERY_MS = 40, 40
LINK, LATENCY_MS = "producer", 400
PRODUCER_LIMIT_S = 60.0


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="kill_producer", when=When(event="at_once"),
                  parameters={"link": LINK, "latency": LATENCY_MS,
                              "answered": draw.randrange(3, 11)})]


def _set_up(stage: Stage) -> None:
    bench = stage.bench
    bench.start_workers(2, 2)
    payload = {"steps": [{"sleep": 20}], "label": "produced"}
    work = [Submission(task_id=bench.new_id(), payload=payload) for _ in range(TASKS)]
    producer.start(bench, stage.target, work, every_ms=EVERY_MS, broker_url=stage.url_of(LINK))


def _afterwards(stage: Stage) -> None:
    """Without faults the producer ends by itself."""
    producer.process_of(stage.bench).wait(PRODUCER_LIMIT_S)
    producer.adopt(stage.bench)


SCENARIO = Scenario(
    "producer_killed_mid_submission",
    "A producer is killed between a submission and its answer: that one is unknown, none is lost.",
    ("TASK-01", "DLV-01", "DLV-02", "DLV-09"),
    _plan, _set_up, (killed_mid_submission(),), _afterwards, needs_toxiproxy=True,
    needs=("status",))

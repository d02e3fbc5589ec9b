"""The reply to a take is lost, and its queue is paused before the worker asks again.

What the broker has handed over is no new work: the worker is given it all the same, and executes it
in the pause, which ends only then.
"""

from __future__ import annotations

import random

from dtq_conformance.front import inspected, want

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import take_reply_lost
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

WORKER = "worker-1"


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="lose_take_reply", when=When(event="end", label="before"),
                  parameters={"link": WORKER, "worker": WORKER, "pauses": True,
                              "task_id": f"{draw.getrandbits(128):032x}"})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_worker(1, broker_url=stage.url_of(WORKER))
    stage.bench.submit(label="before")


def _afterwards(stage: Stage) -> None:
    """Without faults there is no pause, and nothing that was lost."""
    bench = stage.bench
    if not stage.with_faults:
        return
    stage.await_quietly(lambda: bool(bench.witnessed("start", "victim")),
                        reason="what was handed over to be started")
    inspected(bench, "the witness file", ["what was handed over before the pause"], {
        "started in the pause": bool(bench.witnessed("start", "victim"))},
        want("PAUSE-04", "a task that was handed over with a lost reply before a pause",
             holds={"started in the pause": True}))
    bench.resume()


SCENARIO = Scenario(
    "take_reply_lost_before_a_pause",
    "The reply to a take is lost, and the queue is paused; the worker is given the task again.",
    ("DLV-01", "DLV-25", "PAUSE-04", "RETRY-01"),
    _plan, _set_up, (take_reply_lost(),), _afterwards, needs_toxiproxy=True,
    needs=("redis-schema", "pause"))

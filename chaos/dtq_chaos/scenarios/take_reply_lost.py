"""The reply to a take is lost; the worker is given the task again, under the same attempt number.

The task may be attempted once only: were its attempt spent, it would end without being executed.
Another worker has room from then on, should this one lose the task or keep it unseen.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import take_reply_lost
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

VICTIM = "worker-2"


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="lose_take_reply", when=When(event="end", label="before"),
                  parameters={"link": VICTIM, "worker": VICTIM,
                              "task_id": f"{draw.getrandbits(128):032x}"})]


def _set_up(stage: Stage) -> None:
    """The other worker stands still, with nothing in hand, until the reply is lost."""
    bench = stage.bench
    other = bench.start_worker(1)
    bench.start_worker(1, broker_url=stage.url_of(VICTIM))
    bench.await_ready(other)
    other.process.stop()
    bench.submit(label="before")


def _afterwards(stage: Stage) -> None:
    stage.worker("worker-1").process.resume()


SCENARIO = Scenario(
    "take_reply_lost",
    "The reply to a take is lost; the worker is given the task again, as the same attempt.",
    ("DLV-01", "DLV-05", "DLV-25", "DLV-29", "RETRY-01", "RETRY-02"),
    _plan, _set_up, (take_reply_lost(),), _afterwards, needs_toxiproxy=True,
    needs=("redis-schema",))

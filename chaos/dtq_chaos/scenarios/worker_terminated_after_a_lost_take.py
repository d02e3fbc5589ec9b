"""A worker is asked to stop that cannot know what it was given: the reply to its take is lost.

Its link comes back after the SIGTERM. What it never saw waits again when it has ended, and is
executed by another worker; the task may be attempted once only.
"""

from __future__ import annotations

import random

from dtq_conformance.front import inspected, want

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_delivery import never_saw_what_it_was_given, take_reply_lost
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

VICTIM = "worker-1"


def _plan(draw: random.Random) -> list[Entry]:
    return [Entry(fault="lose_take_reply", when=When(event="end", label="before"),
                  parameters={"link": VICTIM, "worker": VICTIM, "asks_to_stop": True,
                              "task_id": f"{draw.getrandbits(128):032x}"})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_worker(1, broker_url=stage.url_of(VICTIM))
    stage.bench.submit(label="before")


def _afterwards(stage: Stage) -> None:
    """Without faults nothing was lost, and the worker goes on."""
    bench = stage.bench
    if stage.with_faults:
        stage.await_quietly(lambda: not stage.worker(VICTIM).process.alive,
                            reason="the worker that was asked to stop to end")
    unseen = set(bench.submissions) - {line.task_id for line in bench.witnessed("start")}
    for task_id in unseen if stage.with_faults else ():
        inspected(bench, "the broker", [f"task {task_id} after its holder's end"], {
            **bench.keyspace.waits_as(task_id),
            "in its hands": task_id in bench.keyspace.in_hand(VICTIM)},
            want("DLV-26", "a task whose holder never saw it and has stopped",
                 holds={"status": "queued", "in its hands": False}))
    bench.start_worker(1)


SCENARIO = Scenario(
    "worker_terminated_after_a_lost_take",
    "A worker is asked to stop when the reply to its take is lost; what it never saw comes back.",
    ("STOP-01", "DLV-01", "DLV-26", "RETRY-01"),
    _plan, _set_up, (take_reply_lost(), never_saw_what_it_was_given()), _afterwards,
    needs_toxiproxy=True, needs=("redis-schema",))

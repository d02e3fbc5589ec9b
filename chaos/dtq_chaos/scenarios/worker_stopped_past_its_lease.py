"""A worker is stopped until another has done its task, and goes on: a zombie changes nothing."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import zombie
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # stopped at the start; the first end can only be the new holder's
    return [Entry(fault="stop_worker", when=When(event="start", label="victim"),
                  until=When(event="end", label="victim"),
                  parameters={"holder_of": "victim"})]


def _set_up(stage: Stage) -> None:
    stage.bench.start_workers(2, 2)
    stage.bench.submit({"sleep": 300}, label="victim")
    stage.bench.submit_many(4, {"sleep": 40}, label="bystander")


def _afterwards(stage: Stage) -> None:
    """Wait for the zombie's own end line, so that it has had its chance to do harm."""
    if not stage.with_faults:
        return  # there is no zombie
    stage.await_quietly(lambda: len(stage.bench.witnessed("end", "victim")) >= 2,
                        reason="the zombie's handler to end")
    if not stage.bench.has_schema:
        return
    stage.await_quietly(lambda: not stage.bench.keyspace.in_hand("worker-1")
                        and not stage.bench.keyspace.in_hand("worker-2"),
                        reason="all hands to be empty")


SCENARIO = Scenario(
    "worker_stopped_past_its_lease",
    "A worker is stopped until another has done its task, and goes on: it changes nothing.",
    ("STATE-02", "STATE-03", "DLV-01", "DLV-05", "DLV-08"),
    _plan, _set_up, (zombie(),), _afterwards, needs=("status",))

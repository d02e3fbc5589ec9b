"""A process is killed that another one has replaced under its id, and whose work is not done.

In between, the consumers of processes that are gone have been removed where nothing was pending
under their names. What the old process held is still there to be redelivered.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import killed_mid_handler
from dtq_chaos.marks_of_delivery import has_a_namesake
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

OLD = "worker-2"


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="start_namesake", when=When(event="start", label="victim"),
                  parameters={"worker": OLD, "concurrency": 2, "await_sweep": True}),
            Entry(fault="kill_worker", when=When(event="at_once"), parameters={"worker": OLD})]


def _set_up(stage: Stage) -> None:
    """The first worker leads the scheduling, whose leader removes consumers; the second executes
    the victim until it is killed."""
    bench = stage.bench
    bench.start_worker(1)
    bench.submit({"sleep": 3_000}, label="keeps the leader")
    bench.await_witness("start", label="keeps the leader")
    bench.start_worker(2)
    held_ms = 60_000 if stage.with_faults else 200
    bench.submit({"sleep": held_ms, "until_attempt": 1}, label="victim")


SCENARIO = Scenario(
    "replaced_worker_killed",
    "A process that another one replaced under its id is killed with work in hand.",
    ("DLV-01", "DLV-03", "DLV-05", "RETRY-02"),
    _plan, _set_up, (has_a_namesake(mid_handler=True, swept=True), killed_mid_handler()),
    drain_ms=10_000, needs=("redis-schema",))

"""A process is killed that another one has replaced under its id, and whose work is not done.

In between, the consumers of processes that are gone have been removed where nothing was pending
under their names. What the old process held is still there to be redelivered.
"""

from __future__ import annotations

import random

from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Stage
from dtq_chaos.marks import killed_mid_handler
from dtq_chaos.marks_of_delivery import has_a_namesake
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

OLD = "worker-2"
LEADER_LIMIT_S = 20.0


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="start_namesake", when=When(event="start", label="victim"),
                  parameters={"worker": OLD, "concurrency": 2, "await_sweep": True}),
            Entry(fault="kill_worker", when=When(event="at_once"), parameters={"worker": OLD})]


def _set_up(stage: Stage) -> None:
    """The first worker leads the scheduling, whose leader removes consumers; it stands still while
    the second takes the victim, which it executes until it is killed."""
    bench = stage.bench
    leader = bench.start_worker(1)
    wait_for(bench.keyspace.leader, reason="the first worker to lead", limit_s=LEADER_LIMIT_S)
    bench.await_ready(bench.start_worker(2))
    leader.process.stop()
    held_ms = 60_000 if stage.with_faults else 200
    bench.submit({"sleep": held_ms, "until_attempt": 1}, label="victim")
    bench.await_witness("start", label="victim")
    leader.process.resume()


SCENARIO = Scenario(
    "replaced_worker_killed",
    "A process that another one replaced under its id is killed with work in hand.",
    ("DLV-01", "DLV-03", "DLV-05", "RETRY-02"),
    _plan, _set_up, (has_a_namesake(mid_handler=True, swept=True), killed_mid_handler()),
    drain_ms=10_000, needs=("redis-schema",))

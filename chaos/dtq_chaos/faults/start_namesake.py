"""Another process is started under the id of a worker, as a rolling deployment does.

Parameters: worker (the one that has the id so far), concurrency (of its namesake), await_sweep
(also wait until consumers without work have been removed; false if not given). A process that finds
another one under its name drains: for it this is as if it had been asked to stop.
"""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

GHOST = "ghost.00c0ffee"
"""A consumer of nobody with nothing pending: when it is gone, somebody has looked at them all."""


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen when the worker's hash names the other process; what the old one has in hand from then
    on is told by what is pending under its name alone."""
    bench, keyspace = stage.bench, stage.bench.keyspace
    old = stage.worker(entry.parameters["worker"])
    before = keyspace.process_of(old.worker_id)
    new = bench.start_worker(entry.parameters["concurrency"], worker_id=old.worker_id)
    stage.await_quietly(lambda: keyspace.process_of(old.worker_id) != before,
                        reason=f"{new.name} to say hello as {old.worker_id}")
    detail = {**stage.hands(old), "in_hand": keyspace.pending_of(before[0]),
              "namesake": new.name, "before": before, "now": keyspace.process_of(old.worker_id)}
    pids = old.process.pids()
    if entry.parameters.get("await_sweep"):
        keyspace.add_consumer(GHOST)
        detail["swept"] = stage.await_quietly(lambda: not keyspace.has_consumer(GHOST),
                                              reason="consumers without work to be removed")
    return Bite(pids, detail)


KIND = FaultKind("start_namesake", "replaced", _begin)

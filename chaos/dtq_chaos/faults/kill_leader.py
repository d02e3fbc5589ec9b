"""SIGKILL the worker that the scheduler's lock names. No parameters."""

from __future__ import annotations

from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

LEADER_LIMIT_S = 10.0
GONE_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Kill the leader. Seen when it is gone: what is scheduled, and how long its lock holds."""
    del entry
    keyspace = stage.bench.keyspace
    leader = stage.worker(wait_for(keyspace.leader, limit_s=LEADER_LIMIT_S,
                                   reason="a worker to hold the scheduler's lock"))
    leader.process.kill()
    leader.process.wait(GONE_LIMIT_S)
    return Bite([leader.pid], {
        "worker": leader.name, "lock_names": keyspace.leader(),
        "lock_left_ms": keyspace.lock_left_ms(), "due_in_ms": keyspace.scheduled()})


KIND = FaultKind("kill_leader", "killed", _begin)

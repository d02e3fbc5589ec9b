"""SIGKILL a worker's process group. Parameters: worker, or holder_of (a label)."""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

GONE_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Stop the victim for the moment that it takes to see what is in its hands, then kill it."""
    victim = stage.victim(entry)
    victim.process.stop()
    hands, pids = stage.hands(victim), victim.process.pids()
    victim.process.kill()
    victim.process.wait(GONE_LIMIT_S)
    return Bite(pids, hands)


KIND = FaultKind("kill_worker", "killed", _begin)

"""SIGTERM a worker: it is asked to stop. Parameters: worker, or holder_of (a label)."""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Stop the victim for the moment that it takes to see what is in its hands, then ask it."""
    victim = stage.victim(entry)
    victim.process.stop()
    hands, pids = stage.hands(victim), victim.process.pids()
    victim.process.terminate()
    victim.process.resume()
    return Bite(pids, hands)


KIND = FaultKind("terminate_worker", "terminated", _begin)

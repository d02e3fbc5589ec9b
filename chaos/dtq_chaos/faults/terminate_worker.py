"""SIGTERM a worker: it is asked to stop. Parameters: worker, or holder_of (a label)."""

from __future__ import annotations

import time

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Stop the victim for the moment that it takes to see what is in its hands, then ask it."""
    victim = stage.victim(entry)
    stopped_ns = time.monotonic_ns()
    victim.process.stop()
    hands, pids = stage.hands(victim), victim.process.pids()
    victim.process.terminate()
    victim.process.resume()
    stood_ms = round((time.monotonic_ns() - stopped_ns) / 1e6)
    return Bite(pids, {**hands, "stood_still_ms": stood_ms})


KIND = FaultKind("terminate_worker", "terminated", _begin)

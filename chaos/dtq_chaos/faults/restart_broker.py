"""The broker is killed and comes back with its data, later than any lease lasts.

Parameters: away (ms, from its death until it is started again). For brokers of the lab's own, with
an append-only file that is synced always.
"""

from __future__ import annotations

import time

from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Return when it answers again. Seen: what each worker had in hand, before and after."""
    bench = stage.bench
    before = {worker.name: bench.keyspace.in_hand(worker.name) for worker in bench.workers}
    bench.lab.broker.kill()
    gone_ns = time.monotonic_ns()
    back_ns = gone_ns + entry.parameters["away"] * 1_000_000
    wait_for(lambda: time.monotonic_ns() > back_ns, limit_s=entry.parameters["away"] / 1000 + 10,
             reason="the broker to have been away for as long as planned")
    bench.lab.broker.restart()
    answered_ns = time.monotonic_ns()
    bench.keyspace.client.connection_pool.disconnect()
    return Bite(detail={"in_hand": before, "away_ms": round((answered_ns - gone_ns) / 1e6),
                        "entries": bench.keyspace.entries()})


KIND = FaultKind("restart_broker", "broker_restarted", _begin)

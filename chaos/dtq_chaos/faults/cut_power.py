"""The power of the broker's machine fails: its append-only file ends somewhere in the last second.

A process that is killed leaves all that it wrote to the kernel. So the file is cut by hand, at any
byte, and never before what stood in it a second earlier: with `appendfsync everysec` that much is
on the disk. Meanwhile tasks are submitted, so that there is something to lose.

Parameters: share (0 to 1, of the last second's bytes that are kept), submissions, away (ms). For
brokers of the lab's own.
"""

from __future__ import annotations

import os
import time

from dtq_conformance.waiting import let_pass

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

SECOND_MS = 1_000


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Return when the broker answers again."""
    bench, count = stage.bench, entry.parameters["submissions"]
    file = bench.lab.broker.append_only_file()
    kept_ns, kept = time.monotonic_ns(), file.stat().st_size  # in this order: no answer is younger
    for _ in range(count):
        bench.submit({"sleep": 20}, label="in the last second")
        let_pass(SECOND_MS // count)
    bench.lab.broker.kill()
    cut_ns, end = time.monotonic_ns(), file.stat().st_size
    cut = kept + round(entry.parameters["share"] * (end - kept))
    os.truncate(file, cut)
    let_pass(entry.parameters["away"])
    bench.lab.broker.restart()
    bench.keyspace.client.connection_pool.disconnect()
    return Bite(detail={"kept_ns": kept_ns, "lasted_ms": round((cut_ns - kept_ns) / 1e6),
                        "kept": kept, "cut": cut, "end": end})


KIND = FaultKind("cut_power", "power_lost", _begin)

"""Let so little through to the broker that a worker's heartbeat is late.

Parameters: link, worker (its user), rate (kB/s, of each connection).
"""

from __future__ import annotations

from itertools import pairwise

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

LATE = 1.5
"""A heartbeat that comes after so many intervals is late; the contract's jitter is far less."""


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Starve the link, and return when the broker has seen two late heartbeats in a row."""
    link, worker = entry.parameters["link"], stage.worker(entry.parameters["worker"])
    keyspace, late_ms = stage.bench.keyspace, LATE * stage.bench.timing.heartbeat_ms
    in_hand = keyspace.in_hand(worker.name)
    stage.link(link).add("bandwidth", stream="upstream", rate=entry.parameters["rate"])
    beats: list[int] = []

    def gaps_ms() -> list[int]:
        return [after - before for before, after in pairwise(beats)]

    def is_late() -> bool:
        beat = keyspace.last_heartbeat_ms(worker.name)
        if beat is not None and beat not in beats:
            beats.append(beat)
        return len(beats) > 2 and min(gaps_ms()[-2:]) > late_ms

    stage.await_quietly(is_late, reason=f"late heartbeats of {worker.name}")
    return Bite([worker.pid], {"link": link, "worker": worker.name, "in_hand": in_hand,
                               "gaps_ms": gaps_ms()})


def _end(stage: Stage, bite: Bite) -> None:
    stage.link(bite.detail["link"]).clear()


KIND = FaultKind("starve_link", "delayed", _begin, _end)

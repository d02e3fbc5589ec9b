"""Delay what the broker answers over a link. Parameters: link, latency (ms), worker (its user)."""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    link, latency_ms = entry.parameters["link"], entry.parameters["latency"]
    stage.link(link).add("latency", stream="downstream", latency=latency_ms)
    return Bite([stage.worker(entry.parameters["worker"]).pid],
                {"link": link, "latency_ms": latency_ms})


def _end(stage: Stage, bite: Bite) -> None:
    stage.link(bite.detail["link"]).clear()


KIND = FaultKind("delay_link", "delayed", _begin, _end)

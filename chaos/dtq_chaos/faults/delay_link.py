"""Delay what the broker answers over a link.

Parameters: link, latency (ms), jitter (ms, none if not given), worker (its user, if it is one),
resumes (whether the worker was stopped, and goes on as soon as the delay is seen to be there).
"""

from __future__ import annotations

import time

import redis

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Delay, and see how long a client of the harness's own now waits for an answer."""
    link, latency_ms = entry.parameters["link"], entry.parameters["latency"]
    jitter_ms, worker = entry.parameters.get("jitter", 0), entry.parameters.get("worker")
    stage.link(link).add("latency", stream="downstream", latency=latency_ms, jitter=jitter_ms)
    client = redis.Redis.from_url(stage.url_of(link))
    client.ping()
    asked_ns = time.monotonic_ns()
    client.ping()
    seen_ms = (time.monotonic_ns() - asked_ns) / 1e6
    client.close()
    if worker and entry.parameters.get("resumes"):
        stage.worker(worker).process.resume()
    return Bite([stage.worker(worker).pid] if worker else [],
                {"link": link, "latency_ms": latency_ms, "jitter_ms": jitter_ms,
                 "seen_ms": round(seen_ms, 1)})


def _end(stage: Stage, bite: Bite) -> None:
    stage.link(bite.detail["link"]).clear()


KIND = FaultKind("delay_link", "delayed", _begin, _end)

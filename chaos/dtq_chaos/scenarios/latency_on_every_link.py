"""Every link to the broker is slow, the client's and each worker's, and not evenly so."""

from __future__ import annotations

import contextlib
import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import links_delayed, worked_under
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

LATENCY_MS, JITTER_MS = 120, 60
WORKERS, CONCURRENCY = 2, 12
LONG, SHORT = 20, 12


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    users = [{"link": f"worker-{number}", "worker": f"worker-{number}"}
             for number in range(1, WORKERS + 1)]
    return [Entry(fault="delay_link", when=When(event="at_once"),
                  parameters={**user, "latency": LATENCY_MS, "jitter": JITTER_MS})
            for user in (*users, {"link": "client"})]


def _set_up(stage: Stage) -> None:
    for number in range(1, WORKERS + 1):
        name = f"worker-{number}"
        stage.bench.start_worker(CONCURRENCY, broker_url=stage.url_of(name))


def _meanwhile(stage: Stage) -> None:
    """Handlers that outlast a lease, and room to execute one again if its lease is let go; the
    short ones come over the slow link."""
    bench = stage.bench
    bench.submit_many(LONG, {"sleep": 1_800}, label="long")
    with contextlib.closing(bench.open_target(stage.url_of("client"))) as client:
        bench.submit_many(SHORT, {"sleep": 20}, label="short", through=client)
    bench.await_all_terminal()


SCENARIO = Scenario(
    "latency_on_every_link",
    "Every link to the broker is slow, the client's and each worker's, and not evenly so.",
    ("TASK-01", "DLV-01", "DLV-05", "DLV-06", "DLV-07", "RETRY-01"),
    _plan, _set_up, (links_delayed(links=WORKERS + 1), worked_under("delay_link", starts=LONG)),
    meanwhile=_meanwhile, needs_toxiproxy=True)

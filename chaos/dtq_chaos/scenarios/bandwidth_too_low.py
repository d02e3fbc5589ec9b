"""A worker's link lets so little through that its heartbeats are late, another one standing by.

What may follow: work is taken, started and recorded late. What may not: the leases that late
heartbeats renew do not end, so nothing is executed again, has two holders or is lost.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import heartbeats_late, worked_under
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

HELD = 4
STARVED = "worker-1"
RATE_KB_PER_S = 3
BYTES_OF_A_PAYLOAD = 2_000


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # while the handlers run, until they have ended
    return [Entry(fault="starve_link", when=When(event="start", label="held", count=HELD),
                  until=When(event="end", label="held", count=HELD),
                  parameters={"link": STARVED, "worker": STARVED, "rate": RATE_KB_PER_S})]


def _set_up(stage: Stage) -> None:
    """The worker that will be starved fills its hands, then the other joins. It has beaten once:
    what it sends is what it always sends, and no script for the first time."""
    bench = stage.bench
    bench.await_ready(bench.start_worker(HELD, broker_url=stage.url_of(STARVED)))
    heard_ms = bench.keyspace.last_heartbeat_ms(STARVED)
    with stage.standing_by(1, HELD):
        bench.submit_many(HELD, {"sleep": 3_000, "note": "x" * BYTES_OF_A_PAYLOAD}, label="held")
        stage.await_quietly(lambda: len(bench.witnessed("start", "held")) >= HELD,
                            reason=f"{STARVED} to have its hands full")
    bench.submit_many(8, {"sleep": 40}, label="bystander")
    stage.await_quietly(lambda: bench.keyspace.last_heartbeat_ms(STARVED) != heard_ms,
                        reason=f"the first heartbeat of {STARVED}")


SCENARIO = Scenario(
    "bandwidth_too_low",
    "A worker's link lets so little through that its heartbeats are late; it keeps its tasks.",
    ("DLV-01", "DLV-05", "DLV-06", "DLV-07", "RETRY-01"),
    _plan, _set_up, (heartbeats_late(), worked_under("starve_link", starts=HELD)),
    needs_toxiproxy=True, needs=("redis-schema",))

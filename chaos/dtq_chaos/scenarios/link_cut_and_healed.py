"""One worker's link to the broker is cut until it is forgotten there, and mended; it rejoins.

While the link is cut, the others go on and take over what the cut worker had in hand. When it is
mended they are asked to stop, so that whatever is submitted then is the rejoined worker's to do.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import others_went_on, took_new_work
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

HELD, LOAD = 2, 60
CUT = "worker-1"


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # cut when its hands are full, until its leases have ended and its record is gone
    return [Entry(fault="cut_link", when=When(event="start", label="load", count=1),
                  until=When(event="forgotten", worker=CUT),
                  parameters={"link": CUT, "worker": CUT})]


def _set_up(stage: Stage) -> None:
    """The worker that will be cut fills its hands, then the others join. Its handlers end after
    those of the next attempt: what it then records must change nothing."""
    bench = stage.bench
    bench.await_ready(bench.start_worker(HELD, broker_url=stage.url_of(CUT)))
    stage.await_grown_server()  # else its leases end later than it is forgotten
    with stage.standing_by(2, 2):
        bench.submit_many(HELD, {"sleep": 3_500, "until_attempt": 1}, label="held")
        stage.await_quietly(lambda: len(bench.witnessed("start", "held")) >= HELD,
                            reason=f"{CUT} to have its hands full")
    bench.submit_many(LOAD, {"sleep": 100}, label="load")


def _afterwards(stage: Stage) -> None:
    bench = stage.bench
    bench.await_all_terminal()
    for worker in bench.workers[1:]:
        bench.await_ready(worker)
        worker.process.terminate()
    bench.submit_many(6, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "link_cut_and_healed",
    "One worker's link to the broker is cut past its leases, and mended; the others go on, it "
    "rejoins.",
    ("DLV-01", "DLV-05", "DLV-07", "DLV-08", "STATE-02", "RETRY-02"),
    _plan, _set_up, (others_went_on(during="cut_link"), took_new_work(after="cut_link")),
    _afterwards, needs_toxiproxy=True, needs=("redis-schema",))

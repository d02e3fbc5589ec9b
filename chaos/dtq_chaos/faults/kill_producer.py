"""SIGKILL the producer when a submission of its is done and not answered.

Parameters: link (the producer's), latency (ms), answered. When so many submissions were answered,
what the broker says to the producer is delayed; the producer is killed when a direct connection
shows the task whose answer is on its way.
"""

from __future__ import annotations

from dtq_conformance.waiting import wait_for

from dtq_chaos import producer
from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

SEEN_LIMIT_S = 10.0
GONE_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    bench, link = stage.bench, stage.link(entry.parameters["link"])
    process = producer.process_of(bench)

    def in_flight_and_there() -> str | None:
        task_id = producer.in_flight(bench)
        return task_id if task_id and bench.look(task_id, always=False) else None

    wait_for(lambda: len(producer.answered(bench)) >= entry.parameters["answered"],
             reason="the producer's first submissions to be answered", limit_s=SEEN_LIMIT_S)
    link.add("latency", stream="downstream", latency=entry.parameters["latency"])
    wait_for(in_flight_and_there, limit_s=SEEN_LIMIT_S,
             reason="a submission that is done and not answered")
    process.kill()
    process.wait(GONE_LIMIT_S)
    link.clear()
    return Bite([process.pid], {"answered": len(producer.answered(bench)),
                                "in_flight": producer.in_flight(bench)})


KIND = FaultKind("kill_producer", "killed", _begin)

"""Cut a worker's link to the broker: connections close, new ones are refused, until it is mended.

Parameters: link, worker (its user).
"""

from __future__ import annotations

import redis
from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

SEEN_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Cut, and return when a client of the harness's own finds that nobody listens there."""
    link, worker = entry.parameters["link"], stage.worker(entry.parameters["worker"])
    in_hand = stage.bench.keyspace.in_hand(worker.name)
    stage.link(link).cut()

    def is_cut() -> bool:
        client = redis.Redis.from_url(stage.url_of(link))
        try:
            client.ping()
        except redis.ConnectionError:
            return True
        finally:
            client.close()
        return False

    wait_for(is_cut, reason=f"the link {link} to be cut", limit_s=SEEN_LIMIT_S)
    return Bite([worker.pid], {"link": link, "worker": worker.name, "in_hand": in_hand})


def _end(stage: Stage, bite: Bite) -> None:
    stage.link(bite.detail["link"]).heal()


KIND = FaultKind("cut_link", "cut", _begin, _end)

"""What is sent over a link is done, and every reply to it is lost, until it is mended.

Parameters: link, worker (its user, if it is one).
"""

from __future__ import annotations

import redis

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

UNANSWERED_S = 0.05
"""A client of the harness's own that hears nothing for so long has lost its reply."""


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Lose replies, and see that a client of the harness's own gets none."""
    link, worker = entry.parameters["link"], entry.parameters.get("worker")
    stage.link(link).add("timeout", stream="downstream", timeout=0)
    client = redis.Redis.from_url(stage.url_of(link), socket_timeout=UNANSWERED_S)
    try:
        client.ping()
        is_lost = False
    except redis.TimeoutError:
        is_lost = True
    finally:
        client.close()
    return Bite([stage.worker(worker).pid] if worker else [],
                {"of": "everything", "link": link, "worker": worker, "lost": is_lost})


def _end(stage: Stage, bite: Bite) -> None:
    stage.link(bite.detail["link"]).clear()


KIND = FaultKind("lose_replies", "reply_lost", _begin, _end)

"""Celery on Redis as a peer of the benchmark: https://docs.celeryq.dev."""

from __future__ import annotations

import sys
from typing import Any

import redis

from dtq_load.bench.peer import Peer, Size, python_app, python_version

RESULTS = "db1"
"""The server's database that holds the results and nothing else."""


def left(client: redis.Redis, submitted: int) -> int:
    """A worker takes a task off its list before it notes it as unacknowledged, so for a moment no
    key has it: what tells its end is its result."""
    return submitted - kept(client)


def kept(client: redis.Redis) -> int:
    databases: Any = client.info("keyspace")
    return int(databases.get(RESULTS, {"keys": 0})["keys"])


def worker(size: Size) -> list[str]:
    pool = ["threads", "-c", str(size.slots)] if size.slots > 1 else \
        ["prefork", "-c", str(size.processes)]
    return [sys.executable, "-P", "-m", "celery", "-A", "dtq_load.peer_apps.celery_app", "worker",
            "-l", "ERROR", "-P", *pool, "--without-gossip", "--without-mingle",
            "--without-heartbeat"]


PEER = Peer(
    name="celery", language="Python",
    settings="Redis as broker and result backend, task_acks_late, no rate limits, gossip, mingle "
             "and heartbeat; default prefetch (the 64 that its guide names for short tasks was no "
             "faster); bulk is a producer's batch; several slots are pool threads, one is pool "
             "prefork (which took half as much processor again; solo was no faster, gevent "
             "half as fast).",
    guarantee="At least once, but for a task on its way from the list to the set of the "
              "unacknowledged: what a dead worker held is put back visibility_timeout, one hour, "
              "after it was taken, and a task that takes longer runs twice (its documentation and "
              "its code); without task_acks_late, which was no faster and is the default, what it "
              "was executing is lost.",
    size=Size(1, 4),
    sweep=(Size(1, 1), Size(2, 1), Size(4, 1), Size(1, 2), Size(1, 4), Size(1, 16)),
    version=lambda: python_version("celery"),
    worker=worker, client=python_app("celery_app"), left=left, kept=kept)

"""Huey as a peer of the benchmark: https://huey.readthedocs.io."""

from __future__ import annotations

import sys

import redis

from dtq_load.bench.peer import Peer, Size, python_app, python_version

RESULTS = "huey.results.bench"
"""Hash of all results; the library's own name for it."""


def left(client: redis.Redis, submitted: int) -> int:
    """A task leaves its list before it is executed: what tells its end is its result."""
    return submitted - int(client.hlen(RESULTS))


def kept(client: redis.Redis) -> int:
    return int(client.hlen(RESULTS))


def worker(size: Size) -> list[str]:
    kind = ["-k", "thread", "-w", str(size.slots)] if size.processes == 1 else \
        ["-k", "process", "-w", str(size.processes)]
    return [sys.executable, "-P", "-m", "huey.bin.huey_consumer",
            "dtq_load.peer_apps.huey_app.huey", *kind, "-q", "--no-periodic"]


PEER = Peer(
    name="huey", language="Python",
    settings="RedisHuey with its blocking pop, minimal logging, no periodic tasks, and "
             "notify_result, which spares the client its polling, where latency is measured; bulk "
             "is task.map; one process has threads for slots, several (worker type process) one "
             "slot each.",
    guarantee="At most once: a task is popped from its list before it is executed, so what a dead "
              "worker had in hand is lost (its code; seen by this harness).",
    size=Size(1, 2), sweep=(Size(1, 1), Size(1, 2), Size(1, 4), Size(1, 8), Size(2, 1), Size(4, 1)),
    version=lambda: python_version("huey"),
    worker=worker, client=python_app("huey_app"), left=left, kept=kept)

"""Dramatiq as a peer of the benchmark: https://dramatiq.io."""

from __future__ import annotations

import sys

import redis

from dtq_load.bench.peer import Peer, Size, count_keys, python_app, python_version

MESSAGES = "dramatiq:default.msgs"
"""Hash of all messages; one goes when it is acknowledged, after its result was stored."""


def left(client: redis.Redis, _submitted: int) -> int:
    return int(client.hlen(MESSAGES))


def kept(client: redis.Redis) -> int:
    return count_keys(client, "dramatiq-results:*")


def worker(size: Size) -> list[str]:
    return [sys.executable, "-P", "-m", "dramatiq", "dtq_load.peer_apps.dramatiq_app",
            "--processes", str(size.processes), "--threads", str(size.slots)]


PEER = Peer(
    name="dramatiq", language="Python",
    settings="RedisBroker with the Results middleware and its RedisBackend, which blocks for a "
             "result; default prefetch; bulk is a group; slots are threads.",
    guarantee="At least once: the messages of a worker without a heartbeat for 60 s are put back "
              "by the others' maintenance, which a call does with a chance of 1 in 1,000 (its "
              "documentation and its script).",
    size=Size(2, 8), sweep=(Size(1, 2), Size(1, 8), Size(2, 2), Size(2, 8), Size(2, 16)),
    version=lambda: python_version("dramatiq"),
    worker=worker, client=python_app("dramatiq_app"), left=left, kept=kept)

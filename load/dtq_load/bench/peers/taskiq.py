"""taskiq with its stream broker as a peer of the benchmark: https://taskiq-python.github.io."""

from __future__ import annotations

import sys
from typing import Any

import redis

from dtq_load.bench.peer import Peer, Size, count_keys, python_app, python_version

STREAM = "taskiq"
"""The stream and its one consumer group; the library's own name for both."""


def left(client: redis.Redis, _submitted: int) -> int:
    """What the group was not given yet, and what it was given and has not acknowledged, which it
    does after the result was stored."""
    groups: Any = client.xinfo_groups(STREAM)
    return sum(int(group["lag"]) + int(group["pending"]) for group in groups)


def kept(client: redis.Redis) -> int:
    return count_keys(client, "result:*")


def worker(size: Size) -> list[str]:
    return [sys.executable, "-P", "-m", "taskiq", "worker", "dtq_load.peer_apps.taskiq_app:broker",
            "--workers", str(size.processes), "--max-async-tasks", str(size.slots),
            "--log-level", "WARNING"]


def version() -> str:
    return f"{python_version('taskiq')} with taskiq-redis {python_version('taskiq-redis')}"


PEER = Peer(
    name="taskiq", language="Python",
    settings="RedisStreamBroker and RedisAsyncResultBackend with uvloop, acknowledged when the "
             "result is saved (the default; --no-parse, more prefetch and larger reads gained "
             "nothing); bulk is asyncio.gather, since it has no other way, and a result is asked "
             "for every ms; a slot is an asyncio task.",
    guarantee="At least once, if tasks go on coming: what a dead worker held is claimed 10 minutes "
              "after it was given to it, by a worker that has just been given new tasks, and by "
              "none while the queue is empty (its code, and tried); a task that takes longer runs "
              "twice.",
    size=Size(2, 50),
    sweep=(Size(1, 20), Size(1, 50), Size(1, 100), Size(1, 300), Size(2, 50), Size(2, 100)),
    version=version, worker=worker, client=python_app("taskiq_app"), left=left, kept=kept)

"""This engine as a peer of the benchmark, with all its guarantees on."""

from __future__ import annotations

import sys

import redis

from dtq_load.bench.peer import Peer, Size, count_keys, python_app, python_version

STREAM = "dtq:stream:default:p5"
"""Where tasks of the default priority wait and are held; an entry goes when its task has ended."""


def left(client: redis.Redis, _submitted: int) -> int:
    """An entry is deleted in the step that records its task's end."""
    return int(client.xlen(STREAM))


def kept(client: redis.Redis) -> int:
    return count_keys(client, "dtq:result:*")


def worker(size: Size) -> list[str]:
    return [sys.executable, "-P", "-m", "dtq_reference.cli", "worker", "run",
            "--tasks", "dtq_load.peer_apps.dtq_app", "--concurrency", str(size.slots)]


def environment(url: str) -> dict[str, str]:
    return {"DTQ_REDIS_URL": url, "DTQ_MAX_QUEUE_DEPTH": "2000000", "DTQ_LOG_LEVEL": "WARNING"}


PEER = Peer(
    name="dtq", language="Python",
    settings="As it comes, but for a queue depth limit (DTQ_MAX_QUEUE_DEPTH) above what is "
             "queued; a slot is an asyncio task.",
    guarantee="At least once: a dead worker's tasks are redelivered when their leases end, 30 s "
              "after the last renewal, and looked for every 5 s (judged by this harness).",
    size=Size(1, 200), sweep=(Size(1, 32), Size(1, 64), Size(1, 100), Size(1, 200)),
    version=lambda: python_version("dtq-contract"),
    worker=worker, client=python_app("dtq_app"), left=left, kept=kept,
    environment=environment)

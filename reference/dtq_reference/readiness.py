"""Is the installation ready? Whether Redis answers, takes writes, and has its consumer groups.

`/ready` asks; an empty list of reasons means yes. Nothing is written: a write that would change
nothing is refused exactly when others would be.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

from redis.exceptions import RedisError, ResponseError

from dtq_reference.keys import GROUP, LEVELS, Keys

LIMIT_S = 2.0
"""Whoever asks hears something within this time, whatever Redis does."""


async def check(redis: Any, keys: Keys, *, limit_s: float = LIMIT_S) -> list[str]:
    """Why the installation is not ready, as sentences."""
    asking = asyncio.ensure_future(_ask(redis, keys))
    # `wait_for` would wait on for a client that is slow to be cancelled
    if not (await asyncio.wait({asking}, timeout=limit_s))[0]:
        asking.cancel()
        return [f"Redis did not answer within {limit_s:g} s."]
    try:
        return asking.result()
    except ResponseError as error:
        return [f"Redis refuses work: {error}"]
    except (RedisError, OSError) as error:
        return [f"Redis cannot be reached: {error}"]


async def _ask(redis: Any, keys: Keys) -> list[str]:
    # XX: only members that are there already, and none has an empty name. A replica that takes no
    # writes, a server out of memory, one that cannot save, loads or is busy: each says so here.
    await redis.zadd(keys.schedule, {"": 0}, xx=True)
    queues = sorted(queue.decode() for queue in await redis.smembers(keys.queues))
    pipeline = redis.pipeline(transaction=False)
    for queue in queues:
        for stream in keys.streams(queue):
            pipeline.xinfo_groups(stream)
    replies = iter(await pipeline.execute(raise_on_error=False))
    return [reason for queue in queues
            if (reason := _without_group(queue, list(islice(replies, len(LEVELS)))))]


def _without_group(queue: str, replies: list[Any]) -> str:
    """Why a queue cannot be served. One that no worker has ever come to has only the streams that
    were written to, and no group yet; the first worker makes all ten."""
    streams = [reply for reply in replies if not isinstance(reply, ResponseError)]
    lacking = sum(all(group["name"] != GROUP.encode() for group in groups) for groups in streams)
    is_new = lacking == len(streams) < len(replies)
    return f"Queue {queue} lacks its consumer group on {lacking} of {len(streams)} streams." \
        if lacking and not is_new else ""

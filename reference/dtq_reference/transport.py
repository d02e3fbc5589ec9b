"""Send calls to Redis: the two thin shells, synchronous and asynchronous, over `calls.py`.

redis-py's own retries are off, since they send again behind one's back. What is sent again is
decided here: `call` sends once, `call_again` until there is an answer or the time is up.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Any

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    NoScriptError,
    TimeoutError,
)
from redis.retry import Retry

from dtq_reference.calls import Call
from dtq_reference.errors import BrokerUnreachable
from dtq_reference.scripts import SCRIPTS

log = logging.getLogger("dtq.transport")

SOCKET_TIMEOUT_S = 5.0
"""Longer than any blocking read, so that a half-open connection is noticed and idling is not."""

UNANSWERED = (ConnectionError, TimeoutError, BusyLoadingError)
"""Errors after which nobody can say whether the call was executed."""


def _options() -> dict[str, Any]:
    return {"socket_timeout": SOCKET_TIMEOUT_S, "socket_connect_timeout": SOCKET_TIMEOUT_S,
            "socket_keepalive": True, "health_check_interval": 0}


def _pause_s(attempt: int) -> float:
    """Backoff before sending again: 20 ms doubling to 1 s, less up to half of it by chance."""
    return min(1.0, 0.02 * 2.0 ** min(attempt, 10)) * (1 - random.random() / 2)


class Transport:
    """The synchronous client's connection. `redis` is untyped: replies come as bytes, which
    redis-py's own types do not tell."""

    def __init__(self, url: str) -> None:
        self.redis: Any = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **_options())

    def call(self, call: Call) -> Any:
        """Send once. Raises what redis-py raises."""
        script = SCRIPTS[call.script]
        try:
            return self.redis.evalsha(script.sha, len(call.keys), *call.keys, call.argument)
        except NoScriptError:
            return self.redis.eval(script.source, len(call.keys), *call.keys, call.argument)

    def call_again(self, call: Call, *, limit_s: float) -> Any:
        """Send until answered; raises `BrokerUnreachable` after `limit_s` without an answer."""
        deadline = time.monotonic() + limit_s
        attempt = 0
        while True:
            try:
                return self.call(call)
            except AuthenticationError:
                raise
            except UNANSWERED as error:
                pause_s = _pause_s(attempt)
                if time.monotonic() + pause_s > deadline:
                    raise BrokerUnreachable(f"Redis did not answer within {limit_s:g} s: {error}. "
                                            "Whether it was done is unknown.") from error
            time.sleep(pause_s)
            attempt += 1

    def close(self) -> None:
        """Close all connections."""
        self.redis.close()


class AsyncTransport:
    """A connection of the worker. Each duty has its own, so that none waits for another's."""

    def __init__(self, url: str) -> None:
        self.redis: Any = redis.asyncio.Redis.from_url(url, retry=AsyncRetry(NoBackoff(), 0),
                                                  **_options())

    async def call(self, call: Call) -> Any:
        """Send once. Raises what redis-py raises."""
        script = SCRIPTS[call.script]
        try:
            return await self.redis.evalsha(script.sha, len(call.keys), *call.keys, call.argument)
        except NoScriptError:
            return await self.redis.eval(script.source, len(call.keys), *call.keys, call.argument)

    async def call_again(self, call: Call) -> Any:
        """Send until answered, however long that takes."""
        attempt = 0
        while True:
            try:
                return await self.call(call)
            except AuthenticationError:
                raise
            except UNANSWERED as error:
                if attempt == 0:
                    log.warning("%s: no answer (%s); sending again until there is one",
                                call.script, error)
                await asyncio.sleep(_pause_s(attempt))
                attempt += 1

    async def close(self) -> None:
        """Close all connections."""
        await self.redis.aclose()

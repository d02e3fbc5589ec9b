"""Send calls to Redis: the synchronous client over a connection of `wire.py`, workers and the API
over redis-py's asynchronous ones. Both raise what redis-py raises.

redis-py's own retries are off, since they send again behind one's back. What is sent again is
decided here: `call` sends once, `call_again` until there is an answer or the time is up. What a
failure means, and whether to go on, is pure (`fate_of`, `Patience`) and the same for both.

After an answer was lost, or a refusal that sends elsewhere, no connection that is older than that
is trusted: a new one looks anew at the name of the host, or in a cluster for the slot's master.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from math import inf
from typing import Any, Literal

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig

from dtq_reference.calls import Call
from dtq_reference.cluster import address_of
from dtq_reference.errors import BrokerUnreachable, DtqError
from dtq_reference.scripts import SCRIPTS
from dtq_reference.wire import Connection, NotSent, ScriptError, Slot

log = logging.getLogger("dtq.transport")

SOCKET_TIMEOUT_S = 3.0
"""Longer than any blocking read, so that a half-open connection is noticed and idling is not."""

UNANSWERED = (exceptions.ConnectionError, exceptions.TimeoutError)
"""No answer: whether the call was executed is unknown, unless it is `NotConnected`."""

WRONG_PASSWORD = (exceptions.AuthenticationError, exceptions.AuthorizationError)

ELSEWHERE = (exceptions.ReadOnlyError, exceptions.MovedError, exceptions.ClusterDownError)
"""Refusals after which another server may be the one to ask."""

REFUSED_FOR_NOW = frozenset({
    "LOADING", "READONLY", "OOM", "MISCONF", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN",
    "NOREPLICAS", "MOVED", "ASK"})
"""The first word of refusals that pass: surely nothing was done, and asking again helps."""

Fate = Literal["unknown", "refused for now", "refused"]


class NotConnected(exceptions.ConnectionError):
    """There was no connection, so nothing was sent."""


def fate_of(error: exceptions.RedisError) -> Fate:
    """What an error says about the call: nothing, or that it was surely not done."""
    code = getattr(error, "status_code", None) or str(error).partition(" ")[0]
    if isinstance(error, NotConnected | exceptions.BusyLoadingError) or code in REFUSED_FOR_NOW:
        return "refused for now"
    is_unknown = isinstance(error, UNANSWERED) and not isinstance(error, WRONG_PASSWORD)
    return "unknown" if is_unknown else "refused"


class Patience:
    """How long one call is sent again, and what is known of its sendings when that ends."""

    def __init__(self, call: Call, limit_s: float | None) -> None:
        self._call = call
        self._limit_s = inf if limit_s is None else limit_s
        self._deadline = time.monotonic() + self._limit_s
        self._attempt = 0
        self._unknown = False

    def pause_s(self, error: exceptions.RedisError) -> float:
        """How long to wait before the next sending: 20 ms doubling to 1 s, less up to half of it
        by chance. Raises what the caller is to know: the error itself when asking again is no use,
        and at the end of the time `BrokerUnreachable`, or `DtqError` when nothing was done."""
        fate = fate_of(error)
        if fate == "refused":
            raise error
        self._unknown = self._unknown or fate == "unknown"
        pause_s = min(1.0, 0.02 * 2.0 ** min(self._attempt, 10)) * (1 - random.random() / 2)
        if time.monotonic() + pause_s > self._deadline:
            raise self._gave_up(error) from error
        if self._attempt == 0:
            log.warning("%s: %s (%s); sending again", self._call.script, fate, error)
        self._attempt += 1
        return pause_s

    def _gave_up(self, error: exceptions.RedisError) -> Exception:
        said = f"within {self._limit_s:g} s: {str(error).rstrip('.')}"
        if self._unknown:
            return BrokerUnreachable(f"Redis did not answer {said}. Whether it was done is "
                                     "unknown.")
        return DtqError("BROKER_UNAVAILABLE",
                        f"Redis did not accept it {said}. Nothing was done.")


class Transport:
    """The synchronous client's connection. `prefix` is the installation's, which in a cluster
    tells whom to ask. Threads that share it wait for each other."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self._connection = Connection(address_of(url, prefix), SOCKET_TIMEOUT_S)
        self._lock = threading.Lock()

    def call(self, call: Call) -> Any:
        """Send once. Raises what redis-py raises."""
        script = SCRIPTS[call.script]
        try:
            with self._lock:
                return self._connection.run(script.sha, script.source, call.keys, call.argument)
        except ScriptError as error:
            about_password = str(error).startswith(("WRONGPASS", "NOAUTH", "ERR AUTH"))
            kind = exceptions.AuthenticationError if about_password else exceptions.ResponseError
            raise kind(str(error)) from error
        except NotSent as error:
            raise NotConnected(str(error)) from error
        except OSError as error:
            raise exceptions.ConnectionError(str(error)) from error

    def call_again(self, call: Call, *, limit_s: float) -> Any:
        """Send until answered. After `limit_s` raises `BrokerUnreachable`, or `DtqError` when
        surely nothing was done."""
        patience = Patience(call, limit_s)
        while True:
            try:
                return self.call(call)
            except exceptions.RedisError as error:
                time.sleep(patience.pause_s(error))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class AsyncTransport:
    """The connections of a worker or an API: as many as there are calls under way. `redis` is a
    client of redis-py for what is no script. Untyped: replies come as bytes, which redis-py's own
    types do not tell."""

    def __init__(self, url: str, prefix: str = "") -> None:
        address = address_of(url, prefix)
        self.redis: Any = Redis(
            host=address.host, port=address.port, unix_socket_path=address.path or None,
            ssl=address.tls, username=address.username or None, password=address.password or None,
            db=address.db, retry=Retry(NoBackoff(), 0), socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
            driver_info=None,  # two commands less for each connection
            maint_notifications_config=MaintNotificationsConfig(enabled=False))
        pool = self.redis.connection_pool
        base = pool.connection_class
        pool.connection_class = type(f"Finding{base.__name__}", (_Finding, base), {
            "_base": base, "_slot": Slot(address)})

    async def call(self, call: Call) -> Any:
        """Send once. Raises what redis-py raises."""
        script = SCRIPTS[call.script]
        try:
            return await self.redis.evalsha(script.sha, len(call.keys), *call.keys, call.argument)
        except exceptions.NoScriptError:
            return await self.redis.eval(script.source, len(call.keys), *call.keys, call.argument)

    async def call_again(self, call: Call, *, limit_s: float | None = None) -> Any:
        """Send until answered, however long that takes, or as `Transport.call_again`."""
        patience = Patience(call, limit_s)
        while True:
            try:
                return await self.call(call)
            except exceptions.RedisError as error:
                await asyncio.sleep(patience.pause_s(error))

    async def close(self) -> None:
        """Close all connections."""
        await self.redis.aclose()


class _Finding:
    """Laid over a class of redis-py's asynchronous connections, `_base`: finds the slot's master
    before it connects, and tells a failure to connect from a lost answer.

    Since `lost_at` some connection of this process has lost an answer or was sent elsewhere. One
    from before that may be half-open, or lead to the wrong server: it is made anew instead of
    waiting for another time limit. Not so one that is subscribed, since it would miss what comes
    meanwhile and nobody would know; whoever listens there sees to it.
    """

    lost_at = 0.0
    made_at = 0.0

    async def connect(self: Any) -> None:
        if self.is_connected and (self.made_at > _Finding.lost_at or self._connect_callbacks):
            return
        await self.disconnect()
        self.made_at = time.monotonic()
        try:
            if self._slot.seeds:
                self.host, self.port = await asyncio.to_thread(self._slot.find)
            await self._base.connect(self)
        except WRONG_PASSWORD:  # which needs another one, not another try
            raise
        except (*UNANSWERED, OSError) as error:
            raise NotConnected(str(error)) from error

    async def read_response(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return await self._base.read_response(self, *args, **options)
        except (*UNANSWERED, *ELSEWHERE):
            _Finding.lost_at = time.monotonic()
            raise

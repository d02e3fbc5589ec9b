"""Pack what a script is asked, and read what it answers: pure functions, no connection.

The synchronous and the asynchronous client are thin shells over these. A `Call` may be sent
again with the same arguments: each script then changes nothing more and answers the same.
Text goes as msgpack strings, since the servers' unpacker does not know msgpack's binary type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dtq_reference.keys import Keys
from dtq_reference.settings import Settings
from dtq_reference.task import TaskRequest, encode_json

SCHEDULER_LOCK_MS = 10_000
PROMOTE_LIMIT = 100

_pack = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class Call:
    """One call of a script."""

    script: str
    keys: Sequence[str]
    argument: bytes


@dataclass(frozen=True)
class Identity:
    """One worker process: its id, and the incarnation that was drawn when it started."""

    worker_id: str
    incarnation: str

    @property
    def consumer(self) -> str:
        """The name under which the process reads; no other process ever has it."""
        return f"{self.worker_id}.{self.incarnation}"


@dataclass(frozen=True)
class Taken:
    """A task that `take` handed over. `level` is its stream's place in KEYS, from 1."""

    level: int
    entry_id: str
    attempt: int
    task_id: str
    task_type: str
    payload: bytes
    max_attempts: int
    timeout_ms: int
    queue: str
    alone: bool
    created_at: int

    @property
    def hold(self) -> tuple[int, str, int, str]:
        """What fences this attempt: level, entry id, attempt, and the task that it is of."""
        return (self.level, self.entry_id, self.attempt, self.task_id)


@dataclass(frozen=True)
class TakeReply:
    """What `take` answered; `last_ids` is empty when there may be more to take at once."""

    state: str
    tasks: list[Taken]
    blocked: bool
    last_ids: list[str]


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: `error_class` is None for a success, whose `result` is JSON."""

    taken: Taken
    duration_ms: int
    result: bytes = b"null"
    error_class: str | None = None
    error_message: str = ""
    retryable: bool = False
    delay_ms: int = 0


def submit(keys: Keys, request: TaskRequest) -> Call:
    return Call("submit",
                [keys.stream(request.queue, request.priority), keys.schedule, keys.queues,
                 keys.recent],
                _pack({"task_prefix": keys.task_prefix, "task_id": request.task_id,
                       "queue": request.queue, "task_type": request.task_type,
                       "payload": encode_json(request.payload, "payload").decode(),
                       "metadata": encode_json(request.metadata, "metadata").decode(),
                       "priority": request.priority, "max_attempts": request.max_attempts,
                       "timeout_ms": request.timeout_ms, "delay_ms": request.delay_ms}))


def take(keys: Keys, settings: Settings, identity: Identity, queue: str, *, room: int,
         in_hand: Iterable[Taken], reap: bool) -> Call:
    return Call("take",
                [*keys.streams(queue), keys.worker_prefix + identity.worker_id, keys.dead_letters],
                _pack({"task_prefix": keys.task_prefix, "consumer": identity.consumer,
                       "worker_id": identity.worker_id, "incarnation": identity.incarnation,
                       "room": room, "in_hand": [taken.hold for taken in in_hand], "reap": reap,
                       "lease_ms": settings.lease_ms, **_burial(settings)}))


def read_take(reply: Any) -> TakeReply:
    state, tasks, blocked, last_ids = reply
    return TakeReply(
        state=state.decode(), blocked=bool(blocked),
        last_ids=[last_id.decode() for last_id in last_ids],
        tasks=[Taken(level, entry_id.decode(), attempt, task_id.decode(), task_type.decode(),
                     payload, max_attempts, timeout_ms, queue.decode(), bool(alone), created_at)
               for level, entry_id, attempt, task_id, task_type, payload, max_attempts, timeout_ms,
               queue, alone, created_at in tasks])


def settle(keys: Keys, settings: Settings, identity: Identity, queue: str,
           outcomes: Sequence[Outcome]) -> Call:
    return Call("settle", [*keys.streams(queue), keys.schedule, keys.dead_letters],
                _pack({"task_prefix": keys.task_prefix, "result_prefix": keys.result_prefix,
                       "consumer": identity.consumer, "worker_id": identity.worker_id,
                       "result_retention_s": settings.result_retention_s, **_burial(settings),
                       "outcomes": [_outcome(outcome) for outcome in outcomes]}))


def _outcome(outcome: Outcome) -> dict[str, Any]:
    taken = outcome.taken
    packed: dict[str, Any] = {"task_id": taken.task_id, "level": taken.level,
                              "entry_id": taken.entry_id, "attempt": taken.attempt,
                              "duration_ms": outcome.duration_ms}
    if outcome.error_class is None:
        packed["result"] = outcome.result.decode()
    else:
        packed |= {"error_class": outcome.error_class, "error_message": outcome.error_message,
                   "retryable": outcome.retryable, "delay_ms": outcome.delay_ms}
    return packed


def _burial(settings: Settings) -> dict[str, Any]:
    """What the scripts need that may have to write a dead letter."""
    return {"dlq_enabled": settings.dlq_enabled, "dlq_maxlen": settings.dlq_maxlen,
            "retention_s": settings.task_retention_s}


def read_settle(reply: Any) -> list[str]:
    """The state that each attempt's end led to, or `superseded`."""
    return [state.decode() for state in reply]


def renew(keys: Keys, settings: Settings, identity: Identity, queue: str,
          holds: Iterable[Taken], about: dict[str, str | int]) -> Call:
    names, argument = renew_parts(keys, settings, identity, queue)
    return Call("renew", names, _pack({**argument, "about": flat(about),
                                       "holds": [taken.hold for taken in holds]}))


def renew_parts(keys: Keys, settings: Settings, identity: Identity,
                queue: str) -> tuple[list[str], dict[str, Any]]:
    """What stays the same from beat to beat: the keys, and the argument without `about` and
    `holds`. The heartbeat's process packs the rest by itself."""
    return ([*keys.streams(queue), keys.worker_prefix + identity.worker_id],
            {"task_prefix": keys.task_prefix, "consumer": identity.consumer,
             "incarnation": identity.incarnation, "lease_ms": settings.lease_ms,
             "ttl_ms": _worker_ttl_ms(settings)})


def read_renew(reply: Any) -> tuple[str, list[bool]]:
    """What the worker hash says of this process, and whether each hold is still its own."""
    state, held = reply
    return state.decode(), [bool(each) for each in held]


def release(keys: Keys, identity: Identity, queue: str, started: Iterable[Taken]) -> Call:
    return Call("release", [*keys.streams(queue), keys.worker_prefix + identity.worker_id],
                _pack({"task_prefix": keys.task_prefix, "consumer": identity.consumer,
                       "incarnation": identity.incarnation,
                       "started": [taken.hold for taken in started]}))


def promote(keys: Keys, consumer: str, queues: Sequence[str]) -> Call:
    streams = [stream for queue in queues for stream in keys.streams(queue)]
    return Call("promote", [keys.scheduler_lock, keys.schedule, *streams],
                _pack({"task_prefix": keys.task_prefix, "consumer": consumer,
                       "lock_ms": SCHEDULER_LOCK_MS, "limit": PROMOTE_LIMIT, "queues": queues}))


@dataclass(frozen=True)
class PromoteReply:
    """`more`: more is due now; `unknown_queue`: a due task's queue was not among those named."""

    leader: bool
    promoted: int
    more: bool
    unknown_queue: bool


def read_promote(reply: Any) -> PromoteReply:
    leader, promoted, more, unknown_queue = reply
    return PromoteReply(bool(leader), promoted, bool(more), bool(unknown_queue))


def register(keys: Keys, settings: Settings, identity: Identity, queue: str,
             about: dict[str, str | int], *, again: bool) -> Call:
    return Call("register",
                [*keys.streams(queue), keys.worker_prefix + identity.worker_id, keys.workers],
                _pack({"worker_id": identity.worker_id, "incarnation": identity.incarnation,
                       "ttl_ms": _worker_ttl_ms(settings), "again": again,
                       "about": flat(about)}))


def goodbye(keys: Keys, identity: Identity, queue: str) -> Call:
    return Call("goodbye",
                [*keys.streams(queue), keys.worker_prefix + identity.worker_id, keys.workers,
                 keys.scheduler_lock],
                _pack({"consumer": identity.consumer, "worker_id": identity.worker_id,
                       "incarnation": identity.incarnation}))


def sweep(keys: Keys, queue: str) -> Call:
    return Call("sweep", [*keys.streams(queue), keys.workers],
                _pack({"worker_prefix": keys.worker_prefix}))


def _worker_ttl_ms(settings: Settings) -> int:
    """A worker's hash outlives ten heartbeats; an observer says stale after three."""
    return round(10_000 * settings.heartbeat_interval_s)


def flat(about: dict[str, str | int]) -> list[str | int]:
    """Fields and values one after the other, as HSET takes them."""
    return [part for pair in about.items() for part in pair]

"""Pack what a script is asked, and read what it answers: pure functions, no connection.

The synchronous and the asynchronous client are thin shells over these. A `Call` may be sent
again with the same arguments: each script then changes nothing more and answers the same.
Text goes as msgpack strings, since the servers' unpacker does not know msgpack's binary type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dtq_reference import signing
from dtq_reference.keys import Keys
from dtq_reference.settings import Settings
from dtq_reference.task import TaskRequest, encode_json

SCHEDULER_LOCK_MS = 10_000
PROMOTE_LIMIT = 100
DISCARD_LIMIT = 500

pack = msgspec.msgpack.Encoder().encode


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

    @property
    def names(self) -> dict[str, str]:
        """What scripts are told of it."""
        return {"worker_id": self.worker_id, "incarnation": self.incarnation,
                "consumer": self.consumer}


HoldName = tuple[int, str, int, str]


class Taken(msgspec.Struct, frozen=True, gc=False):
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
    idempotency_key: str = ""
    signature: str = ""

    @property
    def hold(self) -> HoldName:
        """What fences this attempt: level, entry id, attempt, and the task that it is of."""
        return (self.level, self.entry_id, self.attempt, self.task_id)


Ended = list[list[bytes]]
"""Queue, task type and status of each task that a script ended without another attempt."""


@dataclass(frozen=True)
class TakeReply:
    """What `take` answered; `last_ids` is empty when there may be more to take at once."""

    state: str
    tasks: list[Taken]
    blocked: bool
    last_ids: list[str]
    ended: Ended


class Outcome(msgspec.Struct, gc=False):
    """How an attempt ended: `error_class` is None for a success, whose `result` is JSON."""

    taken: Taken
    duration_ms: int = 0
    result: bytes = b"null"
    error_class: str | None = None
    error_message: str = ""
    retryable: bool = False
    delay_ms: int = 0


@dataclass(frozen=True)
class Actor:
    """Who asks for an administrative action: that goes into the audit stream."""

    name: str
    request_id: str = ""

    @property
    def names(self) -> dict[str, str]:
        """What scripts are told of it."""
        return {"actor": self.name, "request_id": self.request_id}


def _common(keys: Keys, settings: Settings) -> dict[str, Any]:
    """What `common.lua` needs of names and limits."""
    return {"task_prefix": keys.task_prefix, "idempotency_prefix": keys.idempotency_prefix,
            "events": keys.events, "retention_s": settings.task_retention_s,
            "idem_ttl_s": settings.idem_ttl_s, "dlq_enabled": settings.dlq_enabled,
            "dlq_maxlen": settings.dlq_maxlen}


def _call(script: str, names: Sequence[str], keys: Keys, settings: Settings,
          **argument: Any) -> Call:
    return Call(script, names, pack({**_common(keys, settings), **argument}))


def submit(keys: Keys, settings: Settings, requests: Sequence[TaskRequest]) -> Call:
    queues = list(dict.fromkeys(request.queue for request in requests))
    streams = [stream for queue in queues for stream in keys.streams(queue)]
    return _call("submit",
                 [keys.schedule, keys.schedule_depth, keys.queues, keys.recent, *streams],
                 keys, settings, max_depth=settings.max_queue_depth,
                 tasks=[_submission(request, settings, 1 + queues.index(request.queue))
                        for request in requests])


def _submission(request: TaskRequest, settings: Settings, place: int) -> dict[str, Any]:
    payload = encode_json(request.payload, "payload").decode()
    signature = signing.sign(settings.signing_key, request, payload, request.priority) \
        if settings.signing_key else None
    fields = {**msgspec.structs.asdict(request), "payload": payload, "signature": signature,
              "metadata": encode_json(request.metadata, "metadata").decode(),
              "ttl_ms": request.ttl_ms, "place": place}
    return {name: value for name, value in fields.items() if value is not None}


def read_submit(reply: Any) -> list[tuple[str, str, str]]:
    """For each task the verdict, the task id and the status, as `submit.lua` has them."""
    return [(verdict.decode(), task_id.decode(), status.decode())
            for verdict, task_id, status in reply]


def take(keys: Keys, settings: Settings, identity: Identity, queue: str, *, room: int,
         in_hand: Collection[Taken], reap: bool, number: int = 0) -> Call:
    """`number`, from 1: that of a process which has the answer to each take before. What is in its
    hands need then not be told, unless it looks for ended leases."""
    told = {"in_hand": [taken.hold for taken in in_hand]} if reap or not number else {
        "number": f"{identity.incarnation}.{number}"}
    return _call("take",
                 [*keys.streams(queue), keys.worker_prefix + identity.worker_id,
                  keys.dead_letters, keys.paused(queue)],
                 keys, settings, **identity.names, room=room, reap=reap, held=len(in_hand),
                 lease_ms=settings.lease_ms, **told)


def read_take(reply: Any) -> TakeReply:
    state, tasks, blocked, last_ids, ended = reply
    return TakeReply(
        state=state.decode(), blocked=bool(blocked), ended=ended,
        last_ids=[last_id.decode() for last_id in last_ids],
        tasks=[Taken(level, entry_id.decode(), attempt, task_id.decode(), task_type.decode(),
                     payload, max_attempts, timeout_ms, queue.decode(), bool(alone), created_at,
                     key.decode(errors="replace"), signature.decode(errors="replace"))
               for level, entry_id, attempt, task_id, task_type, payload, max_attempts, timeout_ms,
               queue, alone, created_at, key, signature in tasks])


def settle(keys: Keys, settings: Settings, identity: Identity, queue: str,
           outcomes: Sequence[Outcome]) -> Call:
    return _call("settle",
                 [*keys.streams(queue), keys.schedule, keys.schedule_depth, keys.dead_letters],
                 keys, settings, **identity.names, result_prefix=keys.result_prefix,
                 result_retention_s=settings.result_retention_s,
                 outcomes=[_outcome(outcome) for outcome in outcomes])


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


def read_settle(reply: Any) -> list[str]:
    """The state that each attempt's end led to, or `superseded`."""
    return [state.decode() for state in reply]


def renew(keys: Keys, settings: Settings, identity: Identity, queue: str,
          holds: Iterable[Taken], about: dict[str, str | int]) -> Call:
    return Call("renew", [*keys.streams(queue), keys.worker_prefix + identity.worker_id],
                renewing(keys, settings, identity, about)
                + packed_list([pack(taken.hold) for taken in holds]))


def renewing(keys: Keys, settings: Settings, identity: Identity,
             about: dict[str, str | int]) -> bytes:
    """The argument of `renew` up to the packed list of holds, which is to stand behind it."""
    return pack({**_common(keys, settings), **identity.names, "lease_ms": settings.lease_ms,
                 "ttl_ms": _worker_ttl_ms(settings), "about": flat(about), "holds": None})[:-1]


def packed_list(packed: Sequence[bytes]) -> bytes:
    """Values that are packed already as a list: msgpack's array 32."""
    return b"\xdd" + len(packed).to_bytes(4, "big") + b"".join(packed)


def read_renew(reply: Any) -> tuple[str, list[int]]:
    """What the worker hash says of this process; of each hold 0 when it is lost, 1 when it is
    still its own, 2 when besides its cancellation is asked for."""
    state, held = reply
    return state.decode(), held


def release(keys: Keys, settings: Settings, identity: Identity, queue: str,
            started: Iterable[Taken]) -> Call:
    return _call("release", [*keys.streams(queue), keys.worker_prefix + identity.worker_id],
                 keys, settings, **identity.names, started=[taken.hold for taken in started])


def read_release(reply: Any) -> Ended:
    _held, ended = reply
    return list(ended)


def promote(keys: Keys, settings: Settings, identity: Identity, queues: Sequence[str]) -> Call:
    streams = [stream for queue in queues for stream in keys.streams(queue)]
    return _call("promote", [keys.scheduler_lock, keys.schedule, keys.schedule_depth, *streams],
                 keys, settings, **identity.names, lock_ms=SCHEDULER_LOCK_MS,
                 limit=PROMOTE_LIMIT, queues=queues)


@dataclass(frozen=True)
class PromoteReply:
    """`more`: more is due now; `unknown_queue`: a due task's queue was not among those named."""

    leader: bool
    promoted: int
    more: bool
    unknown_queue: bool
    ended: Ended


def read_promote(reply: Any) -> PromoteReply:
    leader, promoted, more, unknown_queue, ended = reply
    return PromoteReply(bool(leader), promoted, bool(more), bool(unknown_queue), ended)


def register(keys: Keys, settings: Settings, identity: Identity, queue: str,
             about: dict[str, str | int], *, again: bool) -> Call:
    return _call("register",
                 [*keys.streams(queue), keys.worker_prefix + identity.worker_id, keys.workers,
                  keys.queues],
                 keys, settings, **identity.names, queue=queue, again=again, about=flat(about),
                 ttl_ms=_worker_ttl_ms(settings))


def goodbye(keys: Keys, settings: Settings, identity: Identity, queue: str) -> Call:
    return _call("goodbye",
                 [*keys.streams(queue), keys.worker_prefix + identity.worker_id, keys.workers,
                  keys.scheduler_lock], keys, settings, **identity.names)


def sweep(keys: Keys, settings: Settings, queue: str) -> Call:
    return _call("sweep", [*keys.streams(queue), keys.workers], keys, settings,
                 worker_prefix=keys.worker_prefix)


def cancel(keys: Keys, settings: Settings, by: Actor, task_id: str, stream: str, *,
           action: str = "cancel", only_waiting: bool = False) -> Call:
    return _call("cancel", [stream, keys.schedule, keys.schedule_depth, keys.audit], keys,
                 settings, **by.names, task_id=task_id, action=action, only_waiting=only_waiting)


def requeue(keys: Keys, settings: Settings, by: Actor, task_id: str, stream: str) -> Call:
    return _call("requeue", [stream, keys.dead_letters, keys.queues, keys.audit], keys, settings,
                 **by.names, task_id=task_id)


def discard(keys: Keys, settings: Settings, by: Actor, *, task_id: str = "",
            action: str = "discard") -> Call:
    """Of one task, or with no `task_id` of the oldest `DISCARD_LIMIT` letters."""
    return _call("discard", [keys.dead_letters, keys.audit], keys, settings, **by.names,
                 task_id=task_id, limit=DISCARD_LIMIT, action=action)


def pause(keys: Keys, settings: Settings, by: Actor, queue: str, *, paused: bool) -> Call:
    return _call("pause", [keys.paused(queue), keys.audit], keys, settings, **by.names,
                 queue=queue, paused=paused)


def forget_queue(keys: Keys, settings: Settings, queue: str) -> Call:
    return _call("forget_queue", [*keys.streams(queue), keys.schedule_depth, keys.queues], keys,
                 settings, queue=queue)


def read(*commands: Sequence[str | int]) -> Call:
    """Read at one instant. The second word of each command, if any, is the key that it reads."""
    return Call("read", list(dict.fromkeys(str(command[1]) for command in commands
                                           if len(command) > 1)),
                pack({"commands": commands}))


def _worker_ttl_ms(settings: Settings) -> int:
    """A worker's hash outlives ten heartbeats; an observer says stale after three."""
    return round(10_000 * settings.heartbeat_interval_s)


def flat(about: dict[str, str | int]) -> list[str | int]:
    """Fields and values one after the other, as HSET takes them."""
    return [part for pair in about.items() for part in pair]

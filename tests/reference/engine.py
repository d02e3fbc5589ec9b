"""One installation of the engine under a prefix of its own, worked script by script.

Time is not waited for: a lease is ended by ageing its pending entry, an appointment by moving its
score, an attempt by moving its `started_at`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from dtq_reference import calls
from dtq_reference.calls import Actor, Call, Identity, Outcome, Taken, TakeReply
from dtq_reference.cluster import address_of
from dtq_reference.errors import DtqError
from dtq_reference.keys import GROUP, LEVELS, Keys
from dtq_reference.operations import Operations, QueueStats, Steps, T, WorkerView
from dtq_reference.queue import Queue
from dtq_reference.settings import Settings
from dtq_reference.task import DeadLetter, Task
from dtq_reference.transport import Transport

LEASE_S = 3
"""Until the server has been up for one lease no lease counts as ended: it is not longer than a
test run can wait for once, and long enough not to end within a test."""

LEADER = Identity("leader", "00000000")
ACTOR = Actor("cli:someone", "r-1")
ANOTHER = Identity("another", "00000000")

LONG_AGO_MS = 86_400_000
OF_THE_MOMENT = frozenset({"started_at", "last_heartbeat"})
"""Hash fields that tell when a step was last sent; a step that is sent again may move them."""


class Engine:
    """The client, the scripts and the key space of one prefix."""

    def __init__(self, url: str, prefix: str, **settings: Any) -> None:
        self.settings = Settings(redis_url=url, key_prefix=prefix, **{
            "visibility_timeout_s": LEASE_S, "heartbeat_interval_s": LEASE_S / 4, **settings})
        self.keys = Keys(prefix)
        self.transport = Transport(url, prefix)
        self.redis = client_of(url)
        self.queue = Queue(self.settings)
        self._incarnations = 0
        self._others: list[Engine | Ear] = []

    def with_settings(self, **settings: Any) -> Engine:
        """The same installation, seen by a process that is configured otherwise."""
        other = Engine(self.settings.redis_url, self.settings.key_prefix, **settings)
        self._others.append(other)
        return other

    def close(self) -> None:
        for other in self._others:
            other.close()
        self.queue.close()
        self.transport.close()
        self.redis.close()

    def run(self, call: Call) -> Any:
        return self.transport.call(call)

    def submit(self, **fields: Any) -> str:
        return self.queue.submit(**{"task_type": "echo_task", **fields}).task_id

    def worker(self, worker_id: str = "w") -> Identity:
        """A process that has said hello; each has an incarnation of its own."""
        self._incarnations += 1
        identity = Identity(worker_id, f"{self._incarnations:08x}")
        self.run(self.hello(identity))
        return identity

    def hello(self, identity: Identity, *, again: bool = False) -> Call:
        return calls.register(self.keys, self.settings, identity, "default",
                              {"status": "ready", "concurrency": 4}, again=again)

    def do(self, steps: Steps[T]) -> T:
        return self.queue.do(steps)

    @property
    def operations(self) -> Operations:
        return self.queue.operations

    def take_call(self, identity: Identity, *, room: int = 10, in_hand: Collection[Taken] = (),
                  reap: bool = True, number: int = 0) -> Call:
        return calls.take(self.keys, self.settings, identity, "default", room=room,
                          in_hand=in_hand, reap=reap, number=number)

    def take(self, identity: Identity, **options: Any) -> TakeReply:
        return calls.read_take(self.run(self.take_call(identity, **options)))

    def take_one(self, identity: Identity, **options: Any) -> Taken:
        """Take what stands first; exactly one task must come."""
        (taken,) = self.take(identity, room=1, **options).tasks
        return taken

    def settle_call(self, identity: Identity, *outcomes: Outcome) -> Call:
        return calls.settle(self.keys, self.settings, identity, "default", outcomes)

    def settle(self, identity: Identity, *outcomes: Outcome) -> list[str]:
        return calls.read_settle(self.run(self.settle_call(identity, *outcomes)))

    def renew_call(self, identity: Identity, *holds: Taken) -> Call:
        return calls.renew(self.keys, self.settings, identity, "default", holds,
                           {"status": "busy", "active_tasks": len(holds)})

    def renew(self, identity: Identity, *holds: Taken) -> tuple[str, list[int]]:
        return calls.read_renew(self.run(self.renew_call(identity, *holds)))

    def release_call(self, identity: Identity, *started: Taken) -> Call:
        return calls.release(self.keys, self.settings, identity, "default", started)

    def release(self, identity: Identity, *started: Taken) -> list[bool]:
        return [bool(held) for held in self.run(self.release_call(identity, *started))[0]]

    def promote_call(self, leader: Identity = LEADER,
                     queues: tuple[str, ...] = ("default",)) -> Call:
        return calls.promote(self.keys, self.settings, leader, queues)

    def promote(self, leader: Identity = LEADER,
                queues: tuple[str, ...] = ("default",)) -> calls.PromoteReply:
        return calls.read_promote(self.run(self.promote_call(leader, queues)))

    def goodbye_call(self, identity: Identity) -> Call:
        return calls.goodbye(self.keys, self.settings, identity, "default")

    def goodbye(self, identity: Identity) -> str:
        reply: bytes = self.run(self.goodbye_call(identity))
        return reply.decode()

    def sweep_call(self) -> Call:
        return calls.sweep(self.keys, self.settings, "default")

    def sweep(self) -> int:
        removed: int = self.run(self.sweep_call())
        return removed

    def now_ms(self) -> int:
        """The server's clock."""
        seconds, microseconds = self.redis.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    def end_leases(self) -> None:
        """Age every pending entry beyond any lease; its holder stays what it was."""
        for stream in self.keys.streams("default"):
            for pending in self.redis.xpending_range(stream, GROUP, "-", "+", 1000):
                self.redis.xclaim(stream, GROUP, pending["consumer"], 0, [pending["message_id"]],
                                  idle=LONG_AGO_MS, justid=True)

    def renew_leases(self) -> None:
        """Let no lease end by the time that the test itself takes; those that ended stay ended."""
        for stream in self.keys.streams("default"):
            for pending in self.redis.xpending_range(stream, GROUP, "-", "+", 1000):
                if pending["time_since_delivered"] < LONG_AGO_MS:
                    self.redis.xclaim(stream, GROUP, pending["consumer"], 0,
                                      [pending["message_id"]], idle=0, justid=True)

    def make_due(self, *task_ids: str) -> None:
        """Let the appointments of these tasks lie in the past, in this order."""
        for place, task_id in enumerate(task_ids, start=1):
            self.redis.zadd(self.keys.schedule, {task_id: place}, xx=True)

    def expire(self, task_id: str) -> None:
        """Let a task's time to live be over."""
        assert "expires_at" in self.record(task_id)
        self.redis.hset(self.keys.task_prefix + task_id, "expires_at", 1)

    def bury(self, **fields: Any) -> str:
        """A task that ended as a dead letter."""
        worker = self.worker("gravedigger")
        task_id = self.submit(**fields)
        self.settle(worker, failed(self.take_one(worker, reap=False), retryable=False))
        return task_id

    def pause(self, queue: str = "default") -> None:
        self.do(self.operations.pause(queue, ACTOR))

    def resume(self, queue: str = "default") -> None:
        self.do(self.operations.resume(queue, ACTOR))

    def cancel(self, task_id: str) -> str:
        return self.do(self.operations.cancel(task_id, ACTOR))

    def requeue(self, task_id: str) -> None:
        self.do(self.operations.requeue(task_id, ACTOR))

    def discard(self, task_id: str) -> None:
        self.do(self.operations.discard(task_id, ACTOR))

    def depth(self, queue: str = "default") -> int:
        return self.queue_stats(queue).depth

    def queue_stats(self, queue: str = "default") -> QueueStats:
        return self.do(self.operations.queue_stats(queue))

    def worker_view(self, worker_id: str) -> WorkerView:
        return self.do(self.operations.worker(worker_id))

    def tasks(self, **which: Any) -> list[Task]:
        return self.do(self.operations.tasks(**which))

    def dead_letters(self, limit: int = 10_000) -> list[DeadLetter]:
        return self.do(self.operations.dead_letters(limit))

    def wait_for_retry(self, **fields: Any) -> str:
        """A task whose first attempt has failed."""
        worker = self.worker("unlucky")
        task_id = self.submit(**fields)
        self.settle(worker, failed(self.take_one(worker, reap=False)))
        return task_id

    def released(self, **fields: Any) -> str:
        """A task that a process took and gave back."""
        leaver = self.worker("leaver")
        task_id = self.submit(**fields)
        assert self.take_one(leaver, reap=False).task_id == task_id
        self.release(leaver)
        return task_id

    def cancel_call(self, task_id: str) -> Call:
        task = self.record(task_id)
        return calls.cancel(self.keys, self.settings, ACTOR, task_id,
                            self.keys.stream(task["queue"], int(task["priority"])))

    def lose_holder(self, worker_id: str = "lost", **options: Any) -> Taken:
        """A process takes one task and dies; its lease ends."""
        taken = self.take_one(self.worker(worker_id), **options)
        self.end_leases()
        return taken

    def lost_twice(self, **fields: Any) -> str:
        """Submit a task that then loses two holders, and waits for its third."""
        task_id = self.submit(**fields)
        assert self.lose_holder().task_id == self.lose_holder().task_id == task_id
        return task_id

    def record(self, task_id: str) -> dict[str, str]:
        found = self.redis.hgetall(self.keys.task_prefix + task_id)
        return {name.decode(): value.decode() for name, value in found.items()}

    def key_record(self, key: str, queue: str = "default") -> dict[str, Any]:
        """The idempotency record of a key; empty if there is none."""
        found = self.redis.get(f"{self.keys.idempotency_prefix}{queue}:{key}")
        return dict(json.loads(found or "{}"))

    def audited(self) -> list[dict[str, str]]:
        """The lines of the audit stream, oldest first."""
        return [{name.decode(): value.decode() for name, value in line.items()}
                for _, line in self.redis.xrange(self.keys.audit)]

    def listen(self) -> Ear:
        """A subscriber to this installation's events, from now on."""
        ear = Ear(self.redis, self.keys.events)
        self._others.append(ear)
        return ear

    def status(self, task_id: str) -> str:
        return self.record(task_id)["status"]

    def expires(self, task_id: str) -> bool:
        return bool(self.redis.ttl(self.keys.task_prefix + task_id) >= 0)

    def letters(self) -> list[str]:
        """The task ids of the dead letters, oldest first."""
        return [letter.task_id for letter in reversed(self.dead_letters())]

    def pending(self) -> dict[str, str]:
        """For each pending task its holder's name in the group; an entry that is deleted and still
        pending is there by its id."""
        found = {}
        for stream in self.keys.streams("default"):
            for pending in self.redis.xpending_range(stream, GROUP, "-", "+", 1000):
                entry_id = pending["message_id"]
                entry = self.redis.xrange(stream, entry_id, entry_id)
                name = entry[0][1][b"task_id"] if entry else entry_id
                found[name.decode()] = pending["consumer"].decode()
        return found

    def consumers(self) -> set[str]:
        return {consumer["name"].decode() for stream in self.keys.streams("default")
                for consumer in self.redis.xinfo_consumers(stream, GROUP)}

    def dump(self, *, notes: bool = True) -> dict[str, Any]:
        """The whole key space of the prefix: types, contents, groups, pending entries with owner
        and delivery count, scores, and whether a key expires; only what OF_THE_MOMENT names is
        left out, and for how long an entry has been idle. Without `notes` also what a task's hash
        says of superseded attempts."""
        keys = sorted(self.redis.scan_iter(f"{self.keys.prefix}*", count=1000))
        kinds, expiries = self._of_each("type", keys), self._of_each("ttl", keys)
        found: dict[str, Any] = {}
        for kind in set(kinds) - {b"none"}:  # none: it has expired by now
            of_kind = [key for key, its in zip(keys, kinds, strict=True) if its == kind]
            found |= zip(of_kind, self._contents(kind, of_kind, notes=notes), strict=True)
        return {key.decode(): (found[key], expiry >= 0)
                for key, expiry in zip(keys, expiries, strict=True) if key in found}

    def _of_each(self, command: str, keys: Iterable[bytes], *arguments: Any,
                 **options: Any) -> list[Any]:
        """What a command answers for each key, in one round trip."""
        pipeline = self.redis.pipeline(transaction=False)
        for key in keys:
            getattr(pipeline, command)(key, *arguments, **options)
        answers: list[Any] = pipeline.execute()
        return answers

    def _contents(self, kind: bytes, keys: list[bytes], *, notes: bool) -> list[Any]:
        match kind:
            case b"hash":
                return [{name: value for name, value in fields.items()
                         if name.decode() not in OF_THE_MOMENT
                         and (notes or not name.startswith(b"superseded:"))}
                        for fields in self._of_each("hgetall", keys)]
            case b"set":
                return self._of_each("smembers", keys)
            case b"zset":
                return self._of_each("zrange", keys, 0, -1, withscores=True)
            case b"string":
                return self._of_each("get", keys)
            case b"stream":
                return list(zip(self._of_each("xrange", keys), self._groups(keys), strict=True))
        raise AssertionError(f"{keys} are of the kind {kind!r}, which no part of the engine writes")

    def _groups(self, keys: list[bytes]) -> list[Any]:
        """Of each stream its group, if it has one, with its consumers and pending entries."""
        groups = self._of_each("xinfo_groups", keys)
        grouped = [key for key, its in zip(keys, groups, strict=True) if its]
        consumers = dict(zip(grouped, self._of_each("xinfo_consumers", grouped, GROUP),
                             strict=True))
        pending = dict(zip(grouped, self._of_each("xpending_range", grouped, GROUP, "-", "+",
                                                  10_000), strict=True))
        return [its and (its[0]["name"], its[0]["last-delivered-id"],
                         {consumer["name"] for consumer in consumers[key]},
                         [(entry["message_id"], entry["consumer"], entry["times_delivered"])
                          for entry in pending[key]])
                for key, its in zip(keys, groups, strict=True)]


def client_of(url: str) -> Any:
    """redis-py's client of a server, in a cluster of the first node."""
    address = address_of(url)
    return redis.Redis(host=address.host, port=address.port, db=address.db)


class Ear:
    """A subscriber to the event channel."""

    def __init__(self, client: Any, channel: str) -> None:
        self._client, self._channel = client, channel
        self._subscription = client.pubsub()
        self._subscription.subscribe(channel)
        assert self._next()["type"] == "subscribe"

    def heard(self) -> list[dict[str, Any]]:
        """The events since the last time, in their order: up to a word of our own."""
        self._client.publish(self._channel, b"enough")
        messages = iter(lambda: self._next()["data"], b"enough")
        return [json.loads(message) for message in messages]

    def types(self) -> list[str]:
        """The types of the events since the last time."""
        return [event["type"] for event in self.heard()]

    def close(self) -> None:
        self._subscription.close()

    def _next(self) -> dict[str, Any]:
        found: dict[str, Any] | None = self._subscription.get_message(timeout=5)
        assert found is not None, "no message came within 5 s"
        return found


@contextmanager
def refused(code: str, match: str | None = None, **details: Any) -> Iterator[None]:
    """The block must be refused with this code, a sentence that matches, and these details."""
    with pytest.raises(DtqError, match=match) as error:
        yield
    assert error.value.code == code
    assert details.items() <= error.value.details.items()


def succeeded(taken: Taken, result: bytes = b'{"done":true}') -> Outcome:
    return Outcome(taken, 5, result)


def failed(taken: Taken, *, retryable: bool = True, delay_ms: int = 60_000) -> Outcome:
    return Outcome(taken, 5, error_class="Broken", error_message="it broke", retryable=retryable,
                   delay_ms=delay_ms)


__all__ = ["ACTOR", "ANOTHER", "GROUP", "LEADER", "LEVELS", "Engine", "failed", "refused",
           "succeeded"]

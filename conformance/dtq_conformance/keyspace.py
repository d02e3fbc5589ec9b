"""The contract's Redis schema read from outside, with a client of the harness's own.

Marks and faults look here: what the broker itself shows as pending is no opinion of the engine.
For targets that claim redis-schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import redis

GROUP = "workers"
RELEASED = "released"
"""The consumer that never reads: what is pending under its name waits."""
LEVELS = range(9, -1, -1)


class KeySpace:
    """The keys of one installation, as section 2 of the contract names them."""

    def __init__(self, client: Any, prefix: str, queue: str = "default") -> None:
        self.client = client
        self.prefix = prefix
        self._streams = [f"{prefix}stream:{queue}:p{level}" for level in LEVELS]

    def in_hand(self, worker_id: str) -> list[str]:
        """Ids of the tasks that are pending under the name of this worker's process."""
        return self._pending(lambda name: name.rpartition(".")[0] == worker_id)

    def pending_of(self, consumer: str) -> list[str]:
        """Ids of the tasks that are pending under this consumer's name."""
        return self._pending(lambda name: name == consumer)

    def _pending(self, is_meant: Callable[[str], bool]) -> list[str]:
        found = []
        for stream, consumer in self._consumers():
            name = consumer["name"].decode()
            if consumer["pending"] and is_meant(name):
                for pending in self.client.xpending_range(
                        stream, GROUP, "-", "+", consumer["pending"], name):
                    entry_id = pending["message_id"]
                    found += [fields[b"task_id"].decode()
                              for _, fields in self.client.xrange(stream, entry_id, entry_id)]
        return found

    def _consumers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for stream in self._streams:
            try:
                yield from ((stream, each) for each in self.client.xinfo_consumers(stream, GROUP))
            except redis.ResponseError:
                continue  # no worker has made the stream or its group yet

    def process_of(self, worker_id: str) -> tuple[str, str]:
        """The process that this worker's hash names: the name under which it reads, and when it
        was started. Two of one worker id differ in one of them at least."""
        found = self.client.hmget(f"{self.prefix}worker:{worker_id}", "incarnation", "started_at")
        incarnation, started_at = ((each or b"").decode() for each in found)
        return f"{worker_id}.{incarnation}", started_at

    def told_by(self, worker_id: str) -> tuple[int, int]:
        """What a worker's hash tells of it: how many tasks it has in hand, how many it has
        succeeded in. Both come with one heartbeat."""
        found = self.client.hmget(f"{self.prefix}worker:{worker_id}", "active_tasks",
                                  "tasks_processed")
        return int(found[0] or 0), int(found[1] or 0)

    def has_consumer(self, name: str) -> bool:
        """Whether any stream's group still has a consumer of this name."""
        return any(consumer["name"].decode() == name for _, consumer in self._consumers())

    def add_consumer(self, name: str) -> None:
        """Make a consumer of this name, who has nothing pending, in every group."""
        for stream in self._streams:
            self.client.xgroup_createconsumer(stream, GROUP, name)

    def drop_groups(self) -> int:
        """Destroy the group of every level, with all that is pending in it; returns how many
        there were."""
        return sum(self.client.xgroup_destroy(stream, GROUP) for stream in self._streams
                   if self.client.exists(stream))

    def forget_groups(self) -> dict[str, int]:
        """Destroy the group of every level in one transaction; returns what was seen in it: how
        many groups were there before it and after, how many entries were in hand, and how many
        waited."""
        with self.client.pipeline(transaction=True) as step:
            for stream in self._streams:
                step.xinfo_groups(stream).xpending(stream, GROUP).xlen(stream)
                step.xgroup_destroy(stream, GROUP).xinfo_groups(stream)
            replies = step.execute(raise_on_error=False)  # of a stream that nobody has made yet
        seen = {"groups": 0, "left": 0, "in_hand": 0, "waiting": 0}
        for before, pending, entries, _, after in zip(*[iter(replies)] * 5, strict=True):
            held = _held(pending)
            seen["groups"] += _has_group(before)
            seen["left"] += _has_group(after)
            seen["in_hand"] += held
            seen["waiting"] += entries - held
        return seen

    def forge_entry(self, task_id: str, payload: dict[str, Any]) -> None:
        """Add an entry of a task that has no record, as its fields stand in the contract."""
        self.client.xadd(self._streams[5], {
            "task_id": task_id, "queue": "default", "task_type": "probe_task",
            "payload": json.dumps(payload), "attempt": 1, "max_attempts": 5, "priority": 4,
            "timeout_ms": 30_000, "idempotency_key": ""})

    def delete_task(self, task_id: str) -> bool:
        """Remove a waiting task's record and entry, behind the engine's back."""
        for stream, entry_id in self._leading_to(task_id)[:1]:
            self.client.xdel(stream, entry_id)
            return bool(self.client.delete(f"{self.prefix}task:{task_id}"))
        return False

    def refusal(self) -> str:
        """The word with which the broker refuses a write that needs memory, OOM for instance;
        nothing if it would take it. Nothing is written: only a key that is there is overwritten."""
        try:
            self.client.set(f"{self.prefix}scratch", "", xx=True)
        except redis.OutOfMemoryError:  # from whose words redis-py has taken the first one
            return "OOM"
        except redis.ResponseError as error:
            return str(error).partition(" ")[0]
        return ""

    def entries(self) -> int:
        """How many entries the streams have: of tasks that wait and of those in hand."""
        return sum(self.client.xlen(stream) for stream in self._streams)

    def leader(self) -> str | None:
        """The worker whose process holds the scheduler's lock."""
        consumer = self.client.get(f"{self.prefix}lock:scheduler")
        return consumer.decode().rpartition(".")[0] if consumer else None

    def lock_left_ms(self) -> int:
        """For how long the scheduler's lock still holds if nobody refreshes it."""
        return int(self.client.pttl(f"{self.prefix}lock:scheduler"))

    def scheduled(self) -> dict[str, int]:
        """Each member of the schedule with the milliseconds until it is due, by the broker's
        clock."""
        seconds, micros = self.client.time()
        now_ms = seconds * 1000 + micros // 1000
        return {task_id.decode(): round(due_ms) - now_ms for task_id, due_ms in self.client.zrange(
            f"{self.prefix}retry:schedule", 0, -1, withscores=True)}

    def last_heartbeat_ms(self, worker_id: str) -> int | None:
        """When this worker was heard last, by the broker's clock; None if it is forgotten."""
        found = self.client.hget(f"{self.prefix}worker:{worker_id}", "last_heartbeat")
        return int(found) if found else None

    def entries_of(self, task_id: str) -> int:
        """How many entries of the streams lead to this task."""
        return len(self._leading_to(task_id))

    def waits_as(self, task_id: str) -> dict[str, Any]:
        """The status that a task's record tells, and the entries that lead to it, each as its level
        and its id."""
        status = self.client.hget(f"{self.prefix}task:{task_id}", "status")
        return {"status": (status or b"").decode(), "entries": [
            f"{stream.rpartition(':')[2]} {entry_id.decode()}"
            for stream, entry_id in self._leading_to(task_id)]}

    def _leading_to(self, task_id: str) -> list[tuple[str, bytes]]:
        """The entries that lead to this task, each by its stream and its id."""
        return [(stream, entry_id) for stream in self._streams
                for entry_id, fields in self.client.xrange(stream)
                if fields[b"task_id"].decode() == task_id]

    def contents(self) -> dict[str, str]:
        """All keys under the prefix, each with what it holds and whether it expires, as text: two
        of them are equal if nobody has changed anything in between."""
        found = {}
        for name in self.client.scan_iter(match=f"{self.prefix}*", count=1000):
            kind = self.client.type(name).decode()
            holds = _READ[kind](self.client, name) if kind in _READ else self.client.dump(name)
            found[name.decode()] = f"{kind} {holds!r} {self.client.pttl(name) >= 0}"
        return found


def _has_group(told: Any) -> bool:
    """Whether the group is one of a stream's, by the reply to XINFO GROUPS."""
    return not isinstance(told, Exception) and any(
        each["name"].decode() == GROUP for each in told)


def _held(told: Any) -> int:
    """How many entries of a stream are in hand, by the reply to XPENDING."""
    return 0 if isinstance(told, Exception) else sum(
        each["pending"] for each in told["consumers"] if each["name"].decode() != RELEASED)


def _stream(client: Any, name: bytes) -> Any:
    """The entries, and of each group what it has read and what is pending with whom."""
    return client.xrange(name), [(group, client.xpending(name, group["name"]))
                                 for group in client.xinfo_groups(name)]


_READ: dict[str, Callable[[Any, bytes], Any]] = {
    "string": lambda client, name: client.get(name),
    "hash": lambda client, name: sorted(client.hgetall(name).items()),
    "set": lambda client, name: sorted(client.smembers(name)),
    "zset": lambda client, name: client.zrange(name, 0, -1, withscores=True),
    "stream": _stream,
}
"""How a key of each type is read, in an order that does not depend on how the server keeps it."""

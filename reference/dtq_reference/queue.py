"""The client: submit tasks, look at them, cancel them. Needs no worker and no server but Redis.

`Queue` is synchronous and has a method for each operation; `AsyncQueue` drives the same
`Operations` on an event loop.
"""

from __future__ import annotations

from typing import Any

from dtq_reference.calls import Actor
from dtq_reference.operations import Operations, QueueStats, Steps, Submitted, T, WorkerView
from dtq_reference.settings import Settings
from dtq_reference.task import DeadLetter, Task
from dtq_reference.transport import AsyncTransport, Transport

RESEND_LIMIT_S = 30.0
"""A call is sent again for at most this long, or the retention time if that is less: after that
the first copy of a submission may have finished and been forgotten."""

LIBRARY = Actor("library")


class Queue:
    """A connection to one installation. Not for use by several threads at once.

    An operation that gets no answer is sent again, which changes nothing more; after 30 seconds
    `BrokerUnreachable` is raised: then nobody knows whether it was done.
    """

    def __init__(self, settings: Settings) -> None:
        self.operations = Operations(settings)
        self._transport = Transport(settings.redis_url, settings.key_prefix)
        self._limit_s = min(RESEND_LIMIT_S, settings.task_retention_s)

    def do(self, steps: Steps[T], *, limit_s: float | None = None) -> T:
        """Carry out an operation; `limit_s` bounds how long each of its calls is sent again."""
        reply = None
        while True:
            try:
                call = steps.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = self._transport.call_again(
                call, limit_s=self._limit_s if limit_s is None else limit_s)

    def submit(self, **fields: Any) -> Submitted:
        """Submit a task; the fields are those of `TaskRequest`, of which task_type is needed."""
        return self.do(self.operations.submit(**fields))

    def get(self, task_id: str) -> Task | None:
        """The task as it stands, or None when it is not known (never was, or was forgotten)."""
        return self.do(self.operations.get(task_id))

    def tasks(self, *, queue: str | None = None, status: str | None = None,
              limit: int = 100) -> list[Task]:
        """The newest tasks, newest first."""
        return self.do(self.operations.tasks(queue=queue, status=status, limit=limit))

    def cancel(self, task_id: str, by: Actor = LIBRARY) -> str:
        """Cancel a task: `cancelled`, or `requested` when it runs."""
        return self.do(self.operations.cancel(task_id, by))

    def dead_letters(self, limit: int = 10_000) -> list[DeadLetter]:
        """The newest dead letters, newest first."""
        return self.do(self.operations.dead_letters(limit))

    def requeue(self, task_id: str, by: Actor = LIBRARY) -> None:
        """Give a dead-lettered task a new life."""
        self.do(self.operations.requeue(task_id, by))

    def queue_stats(self, queue: str) -> QueueStats:
        """The numbers of one queue."""
        return self.do(self.operations.queue_stats(queue))

    def worker(self, worker_id: str) -> WorkerView:
        """One worker."""
        return self.do(self.operations.worker(worker_id))

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


class AsyncQueue:
    """The same on an event loop: `await queue.do(queue.operations.submit(...))`."""

    def __init__(self, settings: Settings) -> None:
        self.operations = Operations(settings)
        self._transport = AsyncTransport(settings.redis_url, settings.key_prefix)
        self._limit_s = min(RESEND_LIMIT_S, settings.task_retention_s)

    async def do(self, steps: Steps[T], *, limit_s: float | None = None) -> T:
        """Carry out an operation; `limit_s` bounds how long each of its calls is sent again."""
        reply = None
        while True:
            try:
                call = steps.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = await self._transport.call_again(
                call, limit_s=self._limit_s if limit_s is None else limit_s)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

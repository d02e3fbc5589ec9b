"""The client: submit tasks, look at them, and the rest. Needs no worker and no server but Redis.

`Queue` is synchronous; `AsyncQueue` does the same on an event loop. Each carries out whatever
`operations` offers: `queue.do(queue.operations.pause("default", Actor("me")))`.
"""

from __future__ import annotations

from typing import Any, cast

from dtq_reference.operations import Operations, Steps, Submitted, T
from dtq_reference.settings import Settings
from dtq_reference.task import Task
from dtq_reference.transport import AsyncTransport, Transport

RESEND_LIMIT_S = 30.0
"""A call is sent again for at most this long, or the retention time if that is less: after that
the first copy of a submission may have finished and been forgotten."""


def _limit_s(operations: Operations, given: float | None) -> float:
    longest = min(RESEND_LIMIT_S, operations.settings.task_retention_s)
    return longest if given is None else given


class Queue(Transport):
    """A connection to one installation. Threads that share it wait for each other.

    An operation that gets no answer is sent again, which changes nothing more; after 30 seconds
    `BrokerUnreachable` is raised: then nobody knows whether it was done.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.redis_url, settings.key_prefix)
        self.operations = Operations(settings)

    def do(self, steps: Steps[T], *, limit_s: float | None = None) -> T:
        """Carry out an operation; `limit_s` bounds how long each of its calls is sent again."""
        limit_s = _limit_s(self.operations, limit_s)
        try:
            call = next(steps)
            while True:
                call = steps.send(self.call_again(call, limit_s=limit_s))
        except StopIteration as end:
            return cast(T, end.value)

    def submit(self, **fields: Any) -> Submitted:
        """Submit a task; the fields are those of `TaskRequest`, of which task_type is needed."""
        return self.do(self.operations.submit(**fields))

    def get(self, task_id: str) -> Task | None:
        """The task as it stands, or None when it is not known (never was, or was forgotten)."""
        return self.do(self.operations.get(task_id))


class AsyncQueue(AsyncTransport):
    """The same on an event loop: `await queue.do(queue.operations.submit(...))`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.redis_url, settings.key_prefix)
        self.operations = Operations(settings)

    async def do(self, steps: Steps[T], *, limit_s: float | None = None) -> T:
        """Carry out an operation; `limit_s` bounds how long each of its calls is sent again."""
        limit_s = _limit_s(self.operations, limit_s)
        try:
            call = next(steps)
            while True:
                call = steps.send(await self.call_again(call, limit_s=limit_s))
        except StopIteration as end:
            return cast(T, end.value)

"""What is offered to those outside: the operations of `operations.py` whose answers can be shown.

The HTTP API and the command `dtq` offer the same ones, so that what one refuses the other refuses
with the same code. Each is steps without I/O, as there; the docstrings are what both say of it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from dtq_reference.calls import Actor
from dtq_reference.errors import DtqError
from dtq_reference.operations import Operations, QueueStats, Steps, refusal
from dtq_reference.settings import Settings
from dtq_reference.states import TRANSITIONS
from dtq_reference.task import QueueName, Task, TaskRequest

Shown = dict[str, str | int]

Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Status = Annotated[str, msgspec.Meta(pattern=rf"^({'|'.join(TRANSITIONS)})\Z")]


class Newest(msgspec.Struct, frozen=True):
    """How many of the newest are shown."""

    limit: Limit = 100


class Filter(msgspec.Struct, frozen=True):
    """Which of the newest tasks, and how many."""

    queue: QueueName | None = None
    status: Status | None = None
    limit: Limit = 100


def accepted(task_id: str, status: str) -> Shown:
    """The task that was accepted or changed, and its status now."""
    return {"task_id": task_id, "status": status}


class Offered(Operations):
    """The operations of one installation; on tasks of known types only where these are given."""

    def __init__(self, settings: Settings, known_types: frozenset[str] | None = None) -> None:
        super().__init__(settings)
        self._known_types = known_types

    def _request(self, fields: Any) -> TaskRequest:
        request = super()._request(fields)
        if self._known_types is not None and request.task_type not in self._known_types:
            raise DtqError("UNKNOWN_TASK_TYPE", "No handler is registered for "
                                                f"{request.task_type!r}.")
        return request

    def task(self, task_id: str) -> Steps[Task]:
        """Show a task."""
        task = yield from self.get(task_id)
        if task is None:
            raise refusal("unknown", task_id[:200])
        return task

    def cancel_task(self, task_id: str, by: Actor) -> Steps[Shown]:
        """Cancel a task that waits, or ask a running one to stop."""
        if (yield from self.cancel(task_id, by)) == "requested":
            raise DtqError("CANCEL_REQUESTED", f"Task {task_id} is running. It was asked to stop; "
                                               "no further attempt begins.", task_id=task_id)
        return accepted(task_id, "cancelled")

    def requeue_task(self, task_id: str, by: Actor) -> Steps[Shown]:
        """Give a dead-lettered task a new life."""
        yield from self.requeue(task_id, by)
        return accepted(task_id, "queued")

    def discard_task(self, task_id: str, by: Actor) -> Steps[Shown]:
        """Throw a dead letter away; its task stays dead-lettered."""
        yield from self.discard(task_id, by)
        return accepted(task_id, "dead_lettered")

    def purge_all_letters(self, by: Actor) -> Steps[Shown]:
        """Throw all dead letters away."""
        return {"purged": (yield from self.purge_dead_letters(by))}

    def purge_all_waiting(self, queue: str, by: Actor) -> Steps[Shown]:
        """Cancel all that waits in a queue."""
        return {"purged": (yield from self.purge_queue(queue, by))}

    def pause_queue(self, queue: str, by: Actor) -> Steps[Shown]:
        """Let no worker take from a queue."""
        yield from self.pause(queue, by)
        return {"queue": queue, "paused": True}

    def resume_queue(self, queue: str, by: Actor) -> Steps[Shown]:
        """Let workers take from a queue again."""
        yield from self.resume(queue, by)
        return {"queue": queue, "paused": False}

    def stats(self, queue: str | None = None) -> Steps[QueueStats | list[QueueStats]]:
        """Show the numbers of one queue, or of all."""
        return (yield from self.queue_stats(queue) if queue else self.queues())

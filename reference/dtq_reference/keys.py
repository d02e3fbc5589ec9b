"""Every key that the engine uses. Scripts get these names; none is made anywhere else.

`prefix` (DTQ_KEY_PREFIX, default `dtq:`) stands in front of each. With a hash tag in it
(`{orders}:`) one installation lives in one slot of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

GROUP = "workers"
LEVELS = tuple(range(9, -1, -1))
"""Priority levels in the order in which they are served."""


@dataclass(frozen=True)
class Keys:
    """The key names of one installation."""

    prefix: str

    def stream(self, queue: str, priority: int) -> str:
        """Stream of the entries of one priority level, read by the group `workers`."""
        return f"{self.prefix}stream:{queue}:p{priority}"

    def streams(self, queue: str) -> list[str]:
        """The ten streams of a queue, the most urgent first."""
        return [self.stream(queue, priority) for priority in LEVELS]

    @property
    def dead_letters(self) -> str:
        """Stream of dead letters, the newest DTQ_DLQ_MAXLEN."""
        return f"{self.prefix}stream:dead-letter"

    @property
    def queues(self) -> str:
        """Set of the names of queues."""
        return f"{self.prefix}queues"

    @property
    def schedule(self) -> str:
        """Sorted set of task ids by due time in epoch milliseconds: retries and delayed tasks."""
        return f"{self.prefix}retry:schedule"

    @property
    def schedule_depth(self) -> str:
        """Hash: queue -> how many members of the schedule are its."""
        return f"{self.prefix}retry:depth"

    @property
    def task_prefix(self) -> str:
        """Followed by a task id: the hash of the task."""
        return f"{self.prefix}task:"

    @property
    def result_prefix(self) -> str:
        """Followed by a task id: the JSON result."""
        return f"{self.prefix}result:"

    @property
    def idempotency_prefix(self) -> str:
        """Followed by queue, a colon and a key: JSON with task_id, state and updated_at."""
        return f"{self.prefix}idempotency:"

    @property
    def once_prefix(self) -> str:
        """Followed by a key: what a guarded operation returned."""
        return f"{self.prefix}once:"

    def paused(self, queue: str) -> str:
        """String that exists while a queue is paused."""
        return f"{self.prefix}queue:{queue}:paused"

    @property
    def audit(self) -> str:
        """Stream of administrative actions, about the newest 10,000."""
        return f"{self.prefix}stream:audit"

    @property
    def events(self) -> str:
        """Channel on which every transition is published; not a key."""
        return f"{self.prefix}events"

    @property
    def worker_prefix(self) -> str:
        """Followed by a worker id: the hash of the worker."""
        return f"{self.prefix}worker:"

    @property
    def workers(self) -> str:
        """Set of known worker ids; observers drop the dead."""
        return f"{self.prefix}workers"

    @property
    def recent(self) -> str:
        """Sorted set of task ids by creation time, trimmed to the newest 10,000."""
        return f"{self.prefix}tasks:recent"

    @property
    def scheduler_lock(self) -> str:
        """String: the consumer name of the scheduler's leader."""
        return f"{self.prefix}lock:scheduler"

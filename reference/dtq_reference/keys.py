"""Every key that the engine uses. Scripts get these names; none is made anywhere else.

`prefix` (DTQ_KEY_PREFIX, default `dtq:`) stands in front of each. With a hash tag in it
(`{orders}:`) one installation lives in one slot of a cluster.
"""

from __future__ import annotations

GROUP = "workers"
LEVELS = tuple(range(9, -1, -1))
"""Priority levels in the order in which they are served."""


class Keys:
    """The key names of one installation."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.dead_letters = f"{prefix}stream:dead-letter"
        """Stream of dead letters, the newest DTQ_DLQ_MAXLEN."""
        self.queues = f"{prefix}queues"
        """Set of the names of queues."""
        self.schedule = f"{prefix}retry:schedule"
        """Sorted set of task ids by due time in epoch milliseconds: retries and delayed tasks."""
        self.schedule_depth = f"{prefix}retry:depth"
        """Hash: queue -> how many members of the schedule are its."""
        self.task_prefix = f"{prefix}task:"
        """Followed by a task id: the hash of the task."""
        self.result_prefix = f"{prefix}result:"
        """Followed by a task id: the JSON result."""
        self.idempotency_prefix = f"{prefix}idempotency:"
        """Followed by queue, a colon and a key: JSON with task_id, state and updated_at."""
        self.once_prefix = f"{prefix}once:"
        """Followed by a key: what a guarded operation returned."""
        self.audit = f"{prefix}stream:audit"
        """Stream of administrative actions, about the newest 10,000."""
        self.events = f"{prefix}events"
        """Channel on which every transition is published; not a key."""
        self.worker_prefix = f"{prefix}worker:"
        """Followed by a worker id: the hash of the worker."""
        self.workers = f"{prefix}workers"
        """Set of known worker ids; observers drop the dead."""
        self.recent = f"{prefix}tasks:recent"
        """Sorted set of task ids by creation time, trimmed to the newest 10,000."""
        self.scheduler_lock = f"{prefix}lock:scheduler"
        """String: the consumer name of the scheduler's leader."""

    def stream(self, queue: str, priority: int) -> str:
        """Stream of the entries of one priority level, read by the group `workers`."""
        return f"{self.prefix}stream:{queue}:p{priority}"

    def streams(self, queue: str) -> list[str]:
        """The ten streams of a queue, the most urgent first."""
        return [self.stream(queue, priority) for priority in LEVELS]

    def paused(self, queue: str) -> str:
        """String that exists while a queue is paused."""
        return f"{self.prefix}queue:{queue}:paused"

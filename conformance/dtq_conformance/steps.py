"""The steps that a life of tasks is made of, and the sorts of tasks that are submitted in it.

Comes in: nothing. Goes out: values that `state_machine` draws, `player` plays and a person reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HOLD_MS = 1_500
"""How long a holding attempt works if nothing ends it: longer than it takes to kill its worker."""
HOLDS = 2
"""So many attempts of a holding task hold; the next ends at once."""

DEAF_MS = 600
"""How long a deaf attempt keeps its worker from everything else."""

LEADER_MS = 10_000
"""What the death of the scheduler's leader may add to a wait in the schedule."""


@dataclass(frozen=True)
class Sort:
    """A sort of task: what its handler does, how it is submitted, and the words for it.

    `holds` counts the attempts that hold; `is_scheduled` tells whether it ever waits for a time;
    `has_key` whether it is submitted with an idempotency key of its own.
    """

    words: str
    steps: tuple[dict[str, Any], ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)
    holds: int = 0
    is_scheduled: bool = False
    has_key: bool = False


_HOLD = ({"sleep": HOLD_MS, "until_attempt": HOLDS},)

PLAIN: dict[str, Sort] = {
    "quick": Sort("which ends at once"),
    "holding": Sort(f"whose first {HOLDS} attempts hold for {HOLD_MS} ms", _HOLD, holds=HOLDS),
    "delayed": Sort("which is due in 200 ms", fields={"delay_ms": 200}, is_scheduled=True),
    "failing": Sort("whose first attempt fails and is worth a retry",
                    ({"fail": "retryable", "until_attempt": 1},), is_scheduled=True),
}
DYING: dict[str, Sort] = {
    "hopeless": Sort("which fails permanently", ({"fail": "permanent"},)),
    "holding_its_last": Sort(f"with {HOLDS} attempts, which hold for {HOLD_MS} ms", _HOLD,
                             {"max_attempts": HOLDS}, holds=HOLDS),
    "spent": Sort("with 2 attempts, which both fail and are worth a retry",
                  ({"fail": "retryable"},), {"max_attempts": 2}, is_scheduled=True),
}
KEYED: dict[str, Sort] = {
    "keyed": Sort("which ends at once, with a key", has_key=True),
    "keyed_holding": Sort(f"whose first {HOLDS} attempts hold for {HOLD_MS} ms, with a key", _HOLD,
                          holds=HOLDS, has_key=True),
    "keyed_hopeless": Sort("which fails permanently, with a key", ({"fail": "permanent"},),
                           has_key=True),
}
MORTAL: dict[str, Sort] = {
    "mortal": Sort("which ends at once and has 300 ms to live", fields={"ttl_ms": 300}),
    "mortal_holding": Sort(f"whose first {HOLDS} attempts hold for {HOLD_MS} ms, with 600 ms to "
                           "live", _HOLD, {"ttl_ms": 600}, holds=HOLDS),
    "mortal_failing": Sort("whose first attempt fails and is worth a retry, with 50 ms to live",
                           ({"fail": "retryable", "until_attempt": 1},), {"ttl_ms": 50},
                           is_scheduled=True),
}
DEAF: dict[str, Sort] = {
    "deaf": Sort(f"whose first attempt holds for {DEAF_MS} ms, whatever it is asked",
                 ({"block": DEAF_MS, "until_attempt": 1},), holds=1),
    "deaf_failing": Sort(f"whose first attempt holds for {DEAF_MS} ms, whatever it is asked, and "
                         "then fails", ({"block": DEAF_MS, "until_attempt": 1},
                                        {"fail": "retryable", "until_attempt": 1}), holds=1,
                         is_scheduled=True),
}
SORTS = PLAIN | DYING | KEYED | MORTAL | DEAF
"""The sorts by their name, of each kind the simplest first: shrinking goes that way."""


@dataclass(frozen=True)
class Submit:
    """Submit a new task. Tasks of a life are numbered from 1."""

    task: int
    sort: str

    def __str__(self) -> str:
        return f"submit task {self.task}, {SORTS[self.sort].words}"


@dataclass(frozen=True)
class SubmitAgain:
    """Send the same submission under the same id again."""

    task: int

    def __str__(self) -> str:
        return f"submit task {self.task} again"


@dataclass(frozen=True)
class SubmitItsKey:
    """Submit another task with the key of this one."""

    task: int

    def __str__(self) -> str:
        return f"submit another task with the key of task {self.task}"


@dataclass(frozen=True)
class KillHolder:
    """Wait for the start line of the task's next holding attempt; SIGKILL its worker."""

    task: int

    def __str__(self) -> str:
        return f"kill the worker that holds task {self.task}, as soon as it has started it"


@dataclass(frozen=True)
class StopHolder:
    """Wait for such a start line; SIGSTOP its worker until the task is redelivered; SIGCONT."""

    task: int

    def __str__(self) -> str:
        return (f"stop the worker that holds task {self.task}, and continue it when the task is "
                "executed elsewhere")


@dataclass(frozen=True)
class Drain:
    """Start a worker; SIGTERM the one that executes the most, and do not wait until it is gone."""

    def __str__(self) -> str:
        return "start a worker, and ask the busiest of the others to stop"


@dataclass(frozen=True)
class Cancel:
    """Cancel a task, whatever has become of it; one that holds, once it was started."""

    task: int

    def __str__(self) -> str:
        return f"cancel task {self.task}"


@dataclass(frozen=True)
class Requeue:
    """Requeue a task, once it is over or as it stands in a pause."""

    task: int

    def __str__(self) -> str:
        return f"requeue task {self.task}, once it is over"


@dataclass(frozen=True)
class Discard:
    """Discard the dead letter of a task, once it is over or as it stands in a pause."""

    task: int

    def __str__(self) -> str:
        return f"discard the dead letter of task {self.task}, once it is over"


@dataclass(frozen=True)
class PurgeLetters:
    """Discard all dead letters, once this task is over or as it stands in a pause."""

    task: int

    def __str__(self) -> str:
        return f"purge the dead letters, once task {self.task} is over"


@dataclass(frozen=True)
class Purge:
    """Cancel all that waits."""

    def __str__(self) -> str:
        return "purge the queue"


@dataclass(frozen=True)
class Pause:
    """Pause the queue. No life ends in a pause."""

    def __str__(self) -> str:
        return "pause the queue"


@dataclass(frozen=True)
class Resume:
    """Resume the queue."""

    def __str__(self) -> str:
        return "resume the queue"


@dataclass(frozen=True)
class Wait:
    """Wait until every task so far is over."""

    def __str__(self) -> str:
        return "wait until all tasks are over"


Step = (Submit | SubmitAgain | SubmitItsKey | KillHolder | StopHolder | Drain | Cancel | Requeue
        | Discard | PurgeLetters | Purge | Pause | Resume | Wait)
Life = tuple[Step, ...]


def recovery_more_ms(life: Life) -> int:
    """What the contract allows a target for this life beyond its recovery time: a worker that is
    befallen may be the scheduler's leader, and then whatever waits for its time waits longer; and
    whatever waits for a worker waits for the deaf tasks in it."""
    befallen = any(isinstance(step, KillHolder | StopHolder) for step in life)
    sorts = [step.sort for step in life if isinstance(step, Submit)]
    scheduled = any(SORTS[sort].is_scheduled for sort in sorts)
    deaf = sum(sort in DEAF for sort in sorts)
    return (LEADER_MS if befallen and scheduled else 0) + deaf * DEAF_MS

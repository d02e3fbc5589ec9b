"""The life of tasks as a rule-based state machine: Hypothesis draws lives, and shrinks bad ones.

Comes in: Hypothesis's choices. Goes out: a life, a tuple of steps, to whoever plays it against a
live target (`play`). A whole life is drawn before its first step is taken, so that nothing that a
target does, and no clock, can change what is drawn next: the same choices are the same life.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule

HOLD_MS = 1_500
"""How long a holding attempt works if nothing ends it: longer than it takes to kill its worker."""
HOLDS = 2
"""So many attempts of a holding task hold; the next ends at once."""
MOST_TASKS = 6

LEADER_MS = 10_000
"""What the death of the scheduler's leader may add to a wait in the schedule."""


@dataclass(frozen=True)
class Sort:
    """A sort of task: what its handler does, how it is submitted, and the words for it.

    `holds` counts the attempts that hold; `is_scheduled` tells whether it ever waits for a time.
    """

    words: str
    steps: tuple[dict[str, Any], ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)
    holds: int = 0
    is_scheduled: bool = False


_HOLD = ({"sleep": HOLD_MS, "until_attempt": HOLDS},)

SORTS: dict[str, Sort] = {
    "quick": Sort("which ends at once"),
    "holding": Sort(f"whose first {HOLDS} attempts hold for {HOLD_MS} ms", _HOLD, holds=HOLDS),
    "holding_its_last": Sort(f"with {HOLDS} attempts, which hold for {HOLD_MS} ms", _HOLD,
                             {"max_attempts": HOLDS}, holds=HOLDS),
    "delayed": Sort("which is due in 200 ms", fields={"delay_ms": 200}, is_scheduled=True),
    "failing": Sort("whose first attempt fails and is worth a retry",
                    ({"fail": "retryable", "until_attempt": 1},), is_scheduled=True),
    "hopeless": Sort("which fails permanently", ({"fail": "permanent"},)),
    "spent": Sort("with 2 attempts, which both fail and are worth a retry",
                  ({"fail": "retryable"},), {"max_attempts": 2}, is_scheduled=True),
}
"""The sorts, the simplest first: shrinking goes that way."""


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
class Wait:
    """Wait until every task so far is over."""

    def __str__(self) -> str:
        return "wait until all tasks are over"


Step = Submit | SubmitAgain | KillHolder | StopHolder | Wait
Life = tuple[Step, ...]


def recovery_more_ms(life: Life) -> int:
    """What the contract allows a target for this life beyond its recovery time: a worker that is
    befallen may be the scheduler's leader, and then whatever waits for its time waits longer."""
    befallen = any(isinstance(step, KillHolder | StopHolder) for step in life)
    scheduled = any(isinstance(step, Submit) and SORTS[step.sort].is_scheduled for step in life)
    return LEADER_MS if befallen and scheduled else 0


class TaskLife(RuleBasedStateMachine):
    """What may come next in a life; `play` is called with the whole of it at its end, and raises
    when it was bad."""

    tasks = Bundle("tasks")

    def __init__(self, play: Callable[[Life], None]) -> None:
        super().__init__()
        self._play = play
        self._steps: list[Step] = []
        self._count = 0
        self._waited = True
        self._holding: dict[int, int] = {}

    @precondition(lambda self: self._count < MOST_TASKS)
    @rule(target=tasks, sort=st.sampled_from(list(SORTS)))
    def submit(self, sort: str) -> int:
        """A new task of some sort."""
        self._count += 1
        self._waited = False
        if SORTS[sort].holds:
            self._holding[self._count] = SORTS[sort].holds
        self._steps.append(Submit(self._count, sort))
        return self._count

    @rule(task=tasks)
    def submit_again(self, task: int) -> None:
        """Any task, over or not."""
        self._steps.append(SubmitAgain(task))

    @precondition(lambda self: self._holding)
    @rule()
    def kill_holder(self) -> None:
        """The worker of the oldest task that still has attempts that hold."""
        self._steps.append(KillHolder(self._befalls_the_oldest()))

    @precondition(lambda self: self._holding)
    @rule()
    def stop_holder(self) -> None:
        """The worker of the oldest task that still has attempts that hold."""
        self._steps.append(StopHolder(self._befalls_the_oldest()))

    @precondition(lambda self: not self._waited)
    @rule()
    def wait(self) -> None:
        """For everything; afterwards no attempt holds."""
        self._waited = True
        self._holding.clear()
        self._steps.append(Wait())

    def teardown(self) -> None:
        """The life is drawn: play it."""
        if self._count:
            self._play(tuple(self._steps))

    def _befalls_the_oldest(self) -> int:
        """The oldest holding task, which has one attempt less from now on."""
        task = min(self._holding)
        self._holding[task] -= 1
        if not self._holding[task]:
            del self._holding[task]
        return task

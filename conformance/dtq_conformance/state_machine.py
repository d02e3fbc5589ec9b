"""The life of tasks as a rule-based state machine: Hypothesis draws lives, and shrinks bad ones.

Comes in: Hypothesis's choices, and what the target claims. Goes out: a life, a tuple of steps, to
whoever plays it against a live target (`play`). A whole life is drawn before its first step is
taken, so that nothing that a target does, and no clock, can change what is drawn next: the same
choices are the same life.
"""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule

from dtq_conformance.steps import (
    DEAF,
    DYING,
    KEYED,
    MORTAL,
    PLAIN,
    SORTS,
    Cancel,
    Discard,
    Drain,
    KillHolder,
    Life,
    Pause,
    Purge,
    PurgeLetters,
    Requeue,
    Resume,
    Step,
    StopHolder,
    Submit,
    SubmitAgain,
    SubmitItsKey,
    Wait,
)

MOST_TASKS = 6
MOST_DRAINS = 1
"""In the place of each another worker is started, which takes about a second."""


def _claims(claim: str) -> Callable[[TaskLife], bool]:
    return lambda life: claim in life.claims


class TaskLife(RuleBasedStateMachine):
    """What may come next in a life; `play` is called with the whole of it at its end, and raises
    when it was bad. What the target does not claim is not drawn."""

    tasks = Bundle("tasks")
    dying = Bundle("dying")
    keyed = Bundle("keyed")

    def __init__(self, play: Callable[[Life], None], claims: frozenset[str]) -> None:
        super().__init__()
        self.claims = claims
        self._play = play
        self._steps: list[Step] = []
        self._sorts: dict[int, str] = {}
        self._drains = 0
        self._waited = True
        self._paused = False
        self._holding: dict[int, int] = {}

    # ------------------------------------------------------------ submitting

    @precondition(lambda self: self.has_room)
    @rule(target=tasks, sort=st.sampled_from(list(PLAIN)))
    def submit(self, sort: str) -> int:
        """A new task of some sort."""
        return self._submit(sort)

    @precondition(lambda self: self.has_room)
    @rule(targets=(tasks, dying), sort=st.sampled_from(list(DYING)))
    def submit_dying(self, sort: str) -> int:
        """A new task that ends as a dead letter, by itself or when it loses its holders."""
        return self._submit(sort)

    @precondition(lambda self: self.has_room and _claims("idempotency")(self))
    @rule(targets=(tasks, keyed, dying), sort=st.sampled_from(list(KEYED)))
    def submit_keyed(self, sort: str) -> int:
        """A new task with a key."""
        return self._submit(sort)

    @precondition(lambda self: self.has_room and _claims("ttl")(self))
    @rule(target=tasks, sort=st.sampled_from(list(MORTAL)))
    def submit_mortal(self, sort: str) -> int:
        """A new task with a time to live."""
        return self._submit(sort)

    @precondition(lambda self: self.has_room and _claims("cancel")(self))
    @rule(target=tasks, sort=st.sampled_from(list(DEAF)))
    def submit_deaf(self, sort: str) -> int:
        """A new task whose handler hears of no cancel."""
        return self._submit(sort)

    @rule(task=tasks)
    def submit_again(self, task: int) -> None:
        """Any task, over or not."""
        self._steps.append(SubmitAgain(task))

    @rule(task=keyed)
    def submit_its_key(self, task: int) -> None:
        """Any key, that of a task that is over or not."""
        self._steps.append(SubmitItsKey(task))

    # ------------------------------------------------------------ befalling workers

    @precondition(lambda self: self._holding)
    @rule()
    def kill_holder(self) -> None:
        """The worker of the oldest task that still has attempts that hold. In a pause none holds
        afterwards: it is not redelivered."""
        self._steps.append(KillHolder(self._befalls_the_oldest()))

    @precondition(lambda self: self._holding and not self._paused)
    @rule()
    def stop_holder(self) -> None:
        """The worker of the oldest task that still has attempts that hold."""
        self._steps.append(StopHolder(self._befalls_the_oldest()))

    @precondition(lambda self: self._holding and self._drains < MOST_DRAINS
                  and _claims("shutdown")(self))
    @rule()
    def drain(self) -> None:
        """The busiest worker stops, another one comes."""
        self._drains += 1
        self._steps.append(Drain())

    # ------------------------------------------------------------ administering

    @precondition(_claims("cancel"))
    @rule(task=tasks)
    def cancel(self, task: int) -> None:
        """Any task, over or not; no attempt of it holds any more, unless it is deaf."""
        if self._sorts[task] not in DEAF:
            self._holding.pop(task, None)
        self._steps.append(Cancel(task))

    @precondition(lambda self: not self._waited and _claims("cancel")(self))
    @rule()
    def purge(self) -> None:
        """All that waits."""
        self._steps.append(Purge())

    @precondition(lambda self: not self._paused and _claims("pause")(self))
    @rule()
    def pause(self) -> None:
        """For all tasks that are submitted until it is resumed."""
        self._paused = True
        self._steps.append(Pause())

    @precondition(lambda self: self._paused)
    @rule()
    def resume(self) -> None:
        """After a pause."""
        self._paused = False
        self._steps.append(Resume())

    @precondition(_claims("dlq"))
    @rule(task=dying)
    def requeue(self, task: int) -> None:
        """One that may have died; its attempts hold anew."""
        if holds := SORTS[self._sorts[task]].holds:
            self._holding[task] = holds
        self._waited = False
        self._steps.append(Requeue(task))

    @precondition(_claims("dlq"))
    @rule(task=dying)
    def discard(self, task: int) -> None:
        """One that may have died."""
        self._steps.append(Discard(task))

    @precondition(_claims("dlq"))
    @rule(task=dying)
    def purge_letters(self, task: int) -> None:
        """All of them, when this one may be dead."""
        self._steps.append(PurgeLetters(task))

    # ------------------------------------------------------------ waiting, ending

    @precondition(lambda self: not self._waited and not self._paused)
    @rule()
    def wait(self) -> None:
        """For everything; afterwards no attempt holds."""
        self._waited = True
        self._holding.clear()
        self._steps.append(Wait())

    def teardown(self) -> None:
        """The life is drawn: play it. Nothing stays paused."""
        if self._paused:
            self._steps.append(Resume())
        if self._sorts:
            self._play(tuple(self._steps))

    @property
    def has_room(self) -> bool:
        """Whether another task may be submitted."""
        return len(self._sorts) < MOST_TASKS

    def _submit(self, sort: str) -> int:
        number = len(self._sorts) + 1
        self._sorts[number] = sort
        self._waited = False
        if SORTS[sort].holds:
            self._holding[number] = SORTS[sort].holds
        self._steps.append(Submit(number, sort))
        return number

    def _befalls_the_oldest(self) -> int:
        """The oldest holding task, which has one attempt less from now on."""
        task = min(self._holding)
        self._holding[task] -= 1
        if self._paused or not self._holding[task]:
            del self._holding[task]
        return task

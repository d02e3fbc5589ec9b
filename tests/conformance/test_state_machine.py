"""The lives that Hypothesis draws: whole, readable, and the same for the same seed."""

from __future__ import annotations

import contextlib
from collections import Counter

import hypothesis
import pytest
from dtq_conformance.state_machine import (
    HOLDS,
    LEADER_MS,
    MOST_TASKS,
    SORTS,
    KillHolder,
    Life,
    StopHolder,
    Submit,
    SubmitAgain,
    TaskLife,
    Wait,
    recovery_more_ms,
)
from hypothesis.stateful import run_state_machine_as_test

pytestmark = pytest.mark.slow


class Bad(Exception):
    """A life that the test calls bad."""


def drawn(seed: int, *, lives: int = 100, steps: int = 8, bad: Life | None = None) -> list[Life]:
    """The lives of a seed, in their order; with `bad`, all lives that begin so fail."""
    found: list[Life] = []

    def play(life: Life) -> None:
        found.append(life)
        if bad is not None and life[:len(bad)] == bad:
            raise Bad

    class Machine(TaskLife):
        def __init__(self) -> None:
            super().__init__(play)

    with contextlib.suppress(Bad):
        run_state_machine_as_test(hypothesis.seed(seed)(Machine), settings=hypothesis.settings(
            max_examples=lives, stateful_step_count=steps, database=None, deadline=None,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
            suppress_health_check=list(hypothesis.HealthCheck),
            verbosity=hypothesis.Verbosity.quiet))
    return found


def test_a_seed_draws_the_same_lives_again() -> None:
    assert drawn(3, lives=20) == drawn(3, lives=20)
    assert drawn(3, lives=20) != drawn(4, lives=20)


def test_lives_have_every_kind_of_step_and_every_sort_of_task() -> None:
    steps = [step for life in drawn(1) for step in life]
    assert {type(step) for step in steps} == {Submit, SubmitAgain, KillHolder, StopHolder, Wait}
    assert {step.sort for step in steps if isinstance(step, Submit)} == SORTS.keys()


def test_a_step_speaks_of_tasks_that_were_submitted_and_befalls_attempts_that_hold() -> None:
    for life in drawn(2):
        sorts: dict[int, str] = {}
        befallen: Counter[int] = Counter()
        for step in life:
            if isinstance(step, Submit):
                sorts[step.task] = step.sort
            elif isinstance(step, SubmitAgain):
                assert step.task in sorts
            elif isinstance(step, KillHolder | StopHolder):
                befallen[step.task] += 1
                assert befallen[step.task] <= SORTS[sorts[step.task]].holds <= HOLDS
        assert list(sorts) == list(range(1, len(sorts) + 1))
        assert len(sorts) <= MOST_TASKS


def test_a_bad_life_is_shrunk_to_at_most_five_steps() -> None:
    """What is drawn depends also on which modules are loaded: Hypothesis tries their constants."""
    bad = (Submit(1, "holding"), StopHolder(1))
    convicted = [life for life in drawn(5, lives=5_000, bad=bad) if life[:len(bad)] == bad]
    assert len(min(convicted, key=len)) <= 5


def test_a_life_can_be_read() -> None:
    told = [str(step) for step in (
        Submit(1, "holding_its_last"), SubmitAgain(1), KillHolder(1), StopHolder(1), Wait())]
    assert told == [
        "submit task 1, with 2 attempts, which hold for 1500 ms", "submit task 1 again",
        "kill the worker that holds task 1, as soon as it has started it",
        "stop the worker that holds task 1, and continue it when the task is executed elsewhere",
        "wait until all tasks are over"]


def test_what_waits_for_its_time_has_longer_when_the_leader_may_have_died() -> None:
    held, delayed = Submit(1, "holding"), Submit(2, "delayed")
    assert recovery_more_ms((held, KillHolder(1), delayed)) == LEADER_MS
    assert recovery_more_ms((held, delayed, StopHolder(1))) == LEADER_MS
    assert recovery_more_ms((held, KillHolder(1))) == recovery_more_ms((held, delayed)) == 0

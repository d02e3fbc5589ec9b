"""The lives that Hypothesis draws: whole, readable, and the same for the same seed."""

from __future__ import annotations

import contextlib
from collections import Counter

import hypothesis
import pytest
from dtq_conformance.state_machine import MOST_DRAINS, MOST_TASKS, TaskLife
from dtq_conformance.steps import (
    DEAF,
    HOLDS,
    KEYED,
    MORTAL,
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
    StopHolder,
    Submit,
    SubmitAgain,
    SubmitItsKey,
    Wait,
)
from dtq_conformance.target import CLAIMS
from hypothesis.stateful import run_state_machine_as_test

pytestmark = pytest.mark.slow


class Bad(Exception):
    """A life that the test calls bad."""


EVERYTHING = frozenset(CLAIMS)


def drawn(seed: int, *, lives: int = 100, steps: int = 8, bad: Life | None = None,
          claims: frozenset[str] = EVERYTHING) -> list[Life]:
    """The lives of a seed, in their order; with `bad`, all lives that begin so fail."""
    found: list[Life] = []

    def play(life: Life) -> None:
        found.append(life)
        if bad is not None and life[:len(bad)] == bad:
            raise Bad

    class Machine(TaskLife):
        def __init__(self) -> None:
            super().__init__(play, claims)

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
    steps = [step for seed in (1, 2, 3) for life in drawn(seed, steps=10) for step in life]
    assert {type(step) for step in steps} == {
        Submit, SubmitAgain, SubmitItsKey, KillHolder, StopHolder, Drain, Cancel, Requeue, Discard,
        PurgeLetters, Purge, Pause, Resume, Wait}
    assert {step.sort for step in steps if isinstance(step, Submit)} == SORTS.keys()


@pytest.mark.parametrize(("claim", "steps"), [
    ("cancel", (Cancel, Purge)), ("pause", (Pause, Resume)), ("shutdown", (Drain,)),
    ("dlq", (Requeue, Discard, PurgeLetters)), ("idempotency", (SubmitItsKey,))])
def test_what_is_not_claimed_is_not_drawn(claim: str, steps: tuple[type, ...]) -> None:
    lives = drawn(1, claims=EVERYTHING - {claim})
    assert not [step for life in lives for step in life if isinstance(step, steps)]


@pytest.mark.parametrize(("claim", "sorts"), [
    ("idempotency", KEYED), ("ttl", MORTAL), ("cancel", DEAF)])
def test_sorts_of_what_is_not_claimed_are_not_drawn(claim: str, sorts: dict[str, object]) -> None:
    lives = drawn(1, claims=EVERYTHING - {claim})
    assert not [step for life in lives for step in life
                if isinstance(step, Submit) and step.sort in sorts]


def test_a_step_speaks_of_tasks_that_were_submitted_and_befalls_attempts_that_hold() -> None:
    for life in drawn(2):
        sorts: dict[int, str] = {}
        befallen: Counter[int] = Counter()
        for step in life:
            if isinstance(step, Submit):
                sorts[step.task] = step.sort
            elif isinstance(step, SubmitAgain | Cancel | Discard | PurgeLetters):
                assert step.task in sorts
            elif isinstance(step, SubmitItsKey):
                assert SORTS[sorts[step.task]].has_key
            elif isinstance(step, Requeue):
                befallen[step.task] = 0
            elif isinstance(step, KillHolder | StopHolder):
                befallen[step.task] += 1
                assert befallen[step.task] <= SORTS[sorts[step.task]].holds <= HOLDS
        assert list(sorts) == list(range(1, len(sorts) + 1))
        assert len(sorts) <= MOST_TASKS
        assert sum(isinstance(step, Drain) for step in life) <= MOST_DRAINS


def test_a_pause_ends_and_nobody_waits_in_it() -> None:
    for life in drawn(3):
        paused = False
        for step in life:
            assert not (paused and isinstance(step, Pause | Wait | StopHolder))
            paused = isinstance(step, Pause) or (paused and not isinstance(step, Resume))
        assert not paused


def test_a_bad_life_is_shrunk_to_at_most_five_steps() -> None:
    """What is drawn depends also on which modules are loaded: Hypothesis tries their constants."""
    bad = (Submit(1, "holding"), StopHolder(1))
    convicted = [life for life in drawn(
        5, lives=5_000, bad=bad, claims=frozenset()) if life[:len(bad)] == bad]
    assert len(min(convicted, key=len)) <= 5

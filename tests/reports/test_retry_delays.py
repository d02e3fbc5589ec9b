"""The plot of retry delays: what is a retry, and what its envelope is."""

from __future__ import annotations

import dataclasses

import pytest
from dtq_conformance.history import History, Record
from dtq_reports.plots import retry_delays
from dtq_reports.read import Run

from tests.conformance import histories
from tests.conformance.histories import TIMING, flat, ran


def retried(task: int, *, attempt: int = 1, after_ms: int) -> list[Record]:
    """An attempt that failed, and the next one `after_ms` later."""
    task_id = f"{task:032x}"
    return [*ran(100, 150, task_id, "failed", attempt=attempt),
            *ran(150 + after_ms, 200 + after_ms, task_id, attempt=attempt + 1)]


def run_of(like: Run, *parts: list[Record]) -> Run:
    return dataclasses.replace(like, history=History(histories.header(), flat(parts)))


def test_a_start_after_a_failed_attempt_is_a_retry_and_one_after_a_death_is_not(held: Run) -> None:
    assert retry_delays.delays_of(held) == []
    (delay,) = retry_delays.delays_of(run_of(held, retried(1, after_ms=TIMING.base_delay_ms)))
    assert (delay.attempt, delay.waited_ms) == (1, TIMING.base_delay_ms)


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_the_envelope_doubles_with_each_attempt(held: Run, attempt: int) -> None:
    (delay,) = retry_delays.delays_of(run_of(held, retried(1, attempt=attempt, after_ms=1)))
    nominal = min(TIMING.max_delay_ms, TIMING.base_delay_ms * 2 ** (attempt - 1))
    assert delay.least_ms == nominal * (1 - TIMING.jitter)
    assert delay.most_ms == nominal * (1 + TIMING.jitter)


def test_its_title_counts_those_that_came_too_early_or_late(held: Run) -> None:
    base = TIMING.base_delay_ms
    drawing = retry_delays.draw(run_of(
        held, *(retried(task, after_ms=base) for task in range(5)), retried(6, after_ms=1),
        retried(7, after_ms=base * 2 + 600)))
    assert drawing is not None
    assert drawing.title.endswith("1 came too early, 1 later than an idle worker may")
    assert drawing.title.startswith("7 retries waited from 1 to ")


def test_all_in_their_envelope_is_said_so(held: Run) -> None:
    drawing = retry_delays.draw(run_of(
        held, *(retried(task, after_ms=TIMING.base_delay_ms) for task in range(5))))
    assert drawing is not None
    assert drawing.title.endswith("; none came too early")


def test_a_run_with_few_retries_has_no_such_plot(held: Run) -> None:
    assert retry_delays.draw(run_of(held, retried(1, after_ms=1))) is None

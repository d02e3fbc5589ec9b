"""The plot of recovery: when it is drawn, and that it shows what was measured."""

from __future__ import annotations

import pytest
from dtq_conformance.recovery import recoveries
from dtq_reports.plots import recovery_after_kills
from dtq_reports.read import Run


def test_its_title_tells_the_first_completion_and_what_was_wasted(burst: Run) -> None:
    drawing = recovery_after_kills.draw(burst)
    (measured,) = recoveries(burst.history)
    assert drawing is not None
    assert measured.first_completion_ms is not None
    assert drawing.title == (f"The first task after the kill was completed "
                             f"{measured.first_completion_ms:.0f} ms later; 8 executions were "
                             "wasted")


def test_its_bars_add_up_to_all_completions(burst: Run) -> None:
    drawing = recovery_after_kills.draw(burst)
    assert drawing is not None
    (stairs,) = drawing.figure.axes[0].patches
    rates, edges, _ = stairs.get_data()  # type: ignore[attr-defined]
    assert sum(rates) * (edges[1] - edges[0]) == pytest.approx(600)


def test_each_kill_has_a_line_that_tells_about_it(burst: Run) -> None:
    drawing = recovery_after_kills.draw(burst)
    assert drawing is not None
    (note,) = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert note.startswith("0.500 s: 1 worker killed; first completion ")
    assert note.endswith("; 8 executions wasted")


def test_without_a_kill_or_with_few_tasks_there_is_no_such_plot(canary: Run, held: Run) -> None:
    assert recovery_after_kills.draw(canary) is None
    assert held.deaths
    assert recovery_after_kills.draw(held) is None

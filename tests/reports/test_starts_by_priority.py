"""The plot of starts by priority: when it is drawn, and what its bars add up to."""

from __future__ import annotations

import statistics

import pytest
from dtq_reports.plots import starts_by_priority
from dtq_reports.read import Run


def test_its_bars_add_up_to_all_starts(burst: Run) -> None:
    drawing = starts_by_priority.draw(burst)
    assert drawing is not None
    axes = drawing.figure.axes[0]
    heights = [float(height) for row in axes.patches
               for height in row.get_data().values - row.get_data().baseline]
    tallest = int(drawing.figure.legends[0].get_texts()[0].get_text().rsplit(" ", 1)[1])
    assert sum(heights) / max(heights) * tallest == pytest.approx(608)
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"priority {level}" for level in range(10)]


def test_its_title_compares_the_first_priority_with_the_last(burst: Run) -> None:
    drawing = starts_by_priority.draw(burst)
    assert drawing is not None
    first, last = (statistics.median(
        burst.seconds(execution.start_ns) for task_id, executions in
        burst.history.executions.items() for execution in executions
        if burst.fates[task_id].priority == priority) for priority in (9, 0))
    assert drawing.title == (f"608 starts: half of priority 9 started before {first:.2f} s, "
                             f"half of priority 0 before {last:.2f} s")
    assert first < last


def test_few_tasks_of_one_priority_have_no_such_plot(held: Run) -> None:
    assert starts_by_priority.draw(held) is None

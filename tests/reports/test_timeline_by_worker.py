"""The timeline: its lanes, its bars, and the words on it."""

from __future__ import annotations

from dtq_reports.plot import Drawing
from dtq_reports.plots import timeline_by_worker
from dtq_reports.read import Run
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure


def drawn(run: Run) -> Drawing:
    drawing = timeline_by_worker.draw(run)
    assert drawing is not None
    return drawing


def bars(figure: Figure) -> int:
    """How many executions are drawn: bars stand above the lanes and below the marks."""
    return sum(len(collection.get_paths()) for collection in figure.axes[0].collections
               if isinstance(collection, PolyCollection) and collection.get_zorder() == 3)


def words(figure: Figure) -> list[str]:
    return [text.get_text().strip() for text in figure.axes[0].texts if text.get_text().strip()]


def legend(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.legends[0].get_texts()}


def test_its_title_counts_tasks_executions_and_kills(held: Run) -> None:
    assert drawn(held).title == ("21 tasks, 23 executions, 4 worker processes: "
                                 "2 were killed, at 0.700 and 1.300 s")


def test_it_has_a_lane_for_each_worker_and_a_bar_for_each_execution(held: Run) -> None:
    figure = drawn(held).figure
    lanes = [label.get_text().split()[0] for label in figure.axes[0].get_yticklabels()]
    assert lanes == ["worker-1", "worker-2", "worker-3", "worker-4"]
    assert bars(figure) == 23


def test_each_colour_and_marker_that_occurs_is_in_the_legend(held: Run, canary: Run) -> None:
    assert legend(drawn(held).figure) == {
        "executed to a good end", "cut short: its process ended first", "executed again",
        "the machine stalled", "worker killed (SIGKILL)", "worker process alive"}
    assert legend(drawn(canary).figure) == {
        "executed to a good end", "the harness itself deleted a task", "worker process alive"}


def test_a_lost_task_is_named_where_it_was_executed_last(violated: Run) -> None:
    assert words(drawn(violated).figure) == ["9e3779b9: never executed again",
                                             "killed at 0.260 s", "killed at 3.700 s"]


def test_with_many_tasks_every_bar_is_there_and_no_task_is_named(burst: Run) -> None:
    figure = drawn(burst).figure
    assert bars(figure) == 608
    assert words(figure) == ["killed at 0.500 s"]
    assert figure.get_size_inches()[1] < 9


def test_the_axis_has_its_unit(held: Run) -> None:
    assert drawn(held).figure.axes[0].get_xlabel() == "seconds since the run began"

"""The plot of the order of starts: when it is drawn, and where its strokes stand."""

from __future__ import annotations

from dtq_reports.plots import start_order
from dtq_reports.read import Run, rows_of


def test_each_start_is_a_stroke_at_its_place(burst: Run) -> None:
    drawing = start_order.draw(burst)
    assert drawing is not None
    first, again = drawing.figure.axes[0].collections
    places = sorted(round(float(path.vertices[0][0])) for strokes in (first, again)
                    for path in strokes.get_paths())
    assert places == list(range(1, 609))
    assert len(again.get_paths()) == 8


def test_its_title_compares_the_first_priority_with_the_last(burst: Run) -> None:
    drawing = start_order.draw(burst)
    first = [(place, row.priority) for place, row in enumerate(rows_of(burst.executions), start=1)
             if row.number == 1]
    last_high = max(place for place, priority in first if priority == 9)
    first_low = min(place for place, priority in first if priority == 0)
    assert drawing is not None
    assert drawing.title == (f"Of 608 starts the last of priority 9 was number {last_high}, the "
                             f"first of priority 0 number {first_low}")


def test_tasks_of_one_priority_have_no_such_plot(held: Run) -> None:
    assert start_order.draw(held) is None

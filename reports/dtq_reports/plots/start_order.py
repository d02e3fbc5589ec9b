"""In which order tasks of each priority were started first, whenever that was."""

from __future__ import annotations

import pandas as pd

from dtq_reports.plot import FAINT, Drawing, canvas, finish, marker
from dtq_reports.read import Run
from dtq_reports.words import count, number

SHOWN_FROM_PRIORITIES = 3
SHOWN_FROM_STARTS = 20
FIRST, AGAIN = "#0072b2", "#d55e00"


def draw(run: Run) -> Drawing | None:
    """A stroke for each start, by its place in the order; None where few tasks or priorities are
    to be compared."""
    table = run.executions.assign(place=range(1, len(run.executions) + 1))
    first = table[table["number"] == 1]
    levels = sorted(first["priority"].unique())
    if len(levels) < SHOWN_FROM_PRIORITIES or len(first) < SHOWN_FROM_STARTS:
        return None
    figure, axes = canvas(0.3 * len(levels) + 1.5)
    again = table[table["number"] > 1]
    width = 0.7 if len(table) > 400 else 1.6
    for some, colour, low, high in ((first, FIRST, -0.3, 0.3), (again, AGAIN, -0.4, 0.4)):
        axes.vlines(some["place"], some["priority"] + low, some["priority"] + high, color=colour,
                    linewidth=width, zorder=3)
    axes.set_ylim(levels[0] - 0.6, levels[-1] + 0.6)
    axes.set_xlim(0, len(table) + 1)
    axes.set_yticks(levels, [f"priority {level}" for level in levels])
    axes.set_xlabel("place in the order of starts", color=FAINT, fontsize=9)
    legend = [marker("|", "started for the first time", FIRST)]
    if len(again):
        legend.append(marker("|", "started again", AGAIN))
    return finish(figure, _title(first, levels, len(table)), legend)


def _title(first: pd.DataFrame, levels: list[int], total: int) -> str:
    last_of_high = int(first.loc[first["priority"] == levels[-1], "place"].max())
    first_of_low = int(first.loc[first["priority"] == levels[0], "place"].min())
    return (f"Of {count(total, 'start')} the last of priority {levels[-1]} was number "
            f"{number(last_of_high)}, the first of priority {levels[0]} number "
            f"{number(first_of_low)}")

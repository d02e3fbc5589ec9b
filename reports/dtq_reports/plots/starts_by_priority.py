"""When tasks of each priority were started: strict priority shows as a staircase."""

from __future__ import annotations

import numpy as np

from dtq_reports.plot import INK, Drawing, canvas, finish, marker
from dtq_reports.read import Run
from dtq_reports.words import count

SHOWN_FROM_TASKS = 201
SHOWN_FROM_PRIORITIES = 3
BINS = 120
HEIGHT = 0.85
"""How much of the room between two priorities the tallest bar takes."""


def draw(run: Run) -> Drawing | None:
    """A row of bars for each priority; None where tasks are few and of few priorities."""
    table = run.executions
    levels = sorted(table["priority"].unique())
    if not len(table) or (len(run.tasks) < SHOWN_FROM_TASKS
                          and len(levels) < SHOWN_FROM_PRIORITIES):
        return None
    figure, axes = canvas(0.34 * len(levels) + 1.5)
    edges = np.linspace(0.0, run.end_s, BINS + 1)
    counts = {level: np.histogram(table.loc[table["priority"] == level, "start_s"], edges)[0]
              for level in levels}
    most = max(int(row.max()) for row in counts.values())
    for level in levels:
        axes.stairs(level + counts[level] / most * HEIGHT, edges, baseline=level, fill=True,
                    color="#0072b2", zorder=3)
        axes.axhline(level, color="#dddddd", linewidth=0.6, zorder=1)
    for death in run.deaths:
        axes.axvline(death.at_s, color=INK, linewidth=1.0, zorder=4)
        axes.plot(death.at_s, levels[-1] + 1.0, marker="X", color=INK, markersize=8, zorder=5,
                  clip_on=False)
    axes.set_ylim(levels[0] - 0.1, levels[-1] + 1.05)
    axes.set_xlim(-0.01 * run.end_s, run.end_s * 1.01)
    axes.set_yticks([level + 0.3 for level in levels], [f"priority {level}" for level in levels])
    medians = table.groupby("priority")["start_s"].median()
    high, low = levels[-1], levels[0]
    title = (f"Half of the {count(len(table), 'start')} of priority {high} came before "
             f"{medians[high]:.2f} s" if len(levels) == 1 else
             f"{count(len(table), 'start')}: half of priority {high} started before "
             f"{medians[high]:.2f} s, half of priority {low} before {medians[low]:.2f} s")
    bin_ms = run.end_s / BINS * 1000
    legend = [marker("s", f"starts in {bin_ms:.0f} ms; the tallest bar is {most}", "#0072b2")]
    if run.deaths:
        legend.append(marker("X", "worker killed (SIGKILL)"))
    return finish(figure, title, legend)

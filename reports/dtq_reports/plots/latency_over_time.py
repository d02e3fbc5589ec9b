"""How long each task took from when it was due to its good end, and the quantiles of that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dtq_reports.plot import FAINT, INK, PAPER, Drawing, canvas, finish, marker
from dtq_reports.read import Run
from dtq_reports.words import count

SHOWN_FROM_TASKS = 30
QUANTILES = (0.5, 0.95, 0.99)
LABEL = 0.06
"""The height of a label, as a share of the longest time."""
ONCE, AGAIN = "#0072b2", "#d55e00"


@dataclass(frozen=True)
class Wait:
    """A task that was accepted and ended well: when it was done, and for how long it was due.

    `again` says that it was executed more than once.
    """

    done_s: float
    took_s: float
    again: bool


def draw(run: Run) -> Drawing | None:
    """A point for each task that ended well; None where they are few."""
    waits = waits_of(run)
    if len(waits) < SHOWN_FROM_TASKS:
        return None
    figure, axes = canvas(4.2)
    small = len(waits) > 400
    legend: list[Line2D | Patch] = []
    for again, colour, shape, meaning in ((False, ONCE, ".", "executed once"),
                                          (True, AGAIN, "x", "executed again")):
        some = [wait for wait in waits if wait.again is again]
        if some:
            axes.plot([wait.done_s for wait in some], [wait.took_s for wait in some], shape,
                      color=colour, markersize=3 if small and not again else 5, alpha=0.8,
                      zorder=4 if again else 3)
            legend.append(marker(shape, meaning, colour))
    took = np.array([wait.took_s for wait in waits])
    _draw_quantiles(axes, took)
    for death in run.deaths:
        axes.axvline(death.at_s, color=INK, linewidth=1.0, zorder=2)
        axes.plot(death.at_s, 0, marker="X", color=INK, markersize=9, markeredgecolor="#ffffff",
                  clip_on=False, zorder=6)
    axes.set_ylim(0, took.max() * 1.16)
    seen_s = [*(wait.done_s for wait in waits), *(death.at_s for death in run.deaths)]
    margin_s = 0.03 * (max(seen_s) - min(seen_s)) + 0.01
    axes.set_xlim(min(seen_s) - margin_s, max(seen_s) + margin_s)
    axes.set_xlabel("when the task was done, in seconds since the run began", color=FAINT,
                    fontsize=9)
    axes.set_ylabel("seconds from due to done", color=FAINT, fontsize=9)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    legend.append(Line2D([], [], color=INK, linewidth=0.9, linestyle="--",
                         label="50, 95 and 99 % were done within"))
    if run.deaths:
        legend.append(marker("X", "worker killed (SIGKILL)"))
    return finish(figure, _title(took), legend)


def waits_of(run: Run) -> list[Wait]:
    """Every accepted task that ended well, ordered by its end. It was due when its submission was
    answered, and later by the delay that was asked for."""
    found = []
    for task_id, asked in run.history.submissions.items():
        answered = [o for o in asked if o.outcome == "ok"]
        executions = run.history.executions.get(task_id, [])
        ends = [e.end_ns for e in executions if e.outcome == "ok" and e.end_ns is not None]
        if answered and ends:
            delay_s = float(answered[0].request.get("delay_ms", 0)) / 1000
            due_s = run.seconds(answered[0].answered_ns) + delay_s
            done_s = run.seconds(min(ends))
            found.append(Wait(done_s, max(0.0, done_s - due_s), len(executions) > 1))
    return sorted(found, key=lambda wait: wait.done_s)


def _draw_quantiles(axes: Axes, took: np.ndarray) -> None:
    """A line for each, and its number at the left, clear of the one below."""
    beneath = 0.0
    for quantile, level in zip(QUANTILES, np.quantile(took, QUANTILES), strict=True):
        axes.axhline(level, color=INK, linewidth=0.9, linestyle="--", zorder=2)
        beneath = max(float(level), beneath)
        axes.text(0.004, beneath, f"{quantile:.0%} within {level:.2f} s", fontsize=8.5, ha="left",
                  va="bottom", color=INK, transform=axes.get_yaxis_transform(), zorder=5,
                  bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.6, "alpha": 0.85})
        beneath += LABEL * float(took.max())


def _title(took: np.ndarray) -> str:
    half, most = np.quantile(took, (0.5, 0.99))
    return (f"Half of {count(len(took), 'task')} were done within {half:.2f} s, 99 % within "
            f"{most:.2f} s, the slowest after {took.max():.2f} s")

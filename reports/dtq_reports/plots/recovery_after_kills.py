"""How fast tasks were completed before and after each kill, and how long the way back took."""

from __future__ import annotations

import numpy as np
from dtq_conformance.recovery import Recovery, recoveries
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dtq_reports.plot import FAINT, INK, Drawing, canvas, finish, marker
from dtq_reports.read import Run
from dtq_reports.words import count, number, was

SHOWN_FROM_COMPLETIONS = 50
"""With fewer there is no rate to speak of."""

NOTES_AT_MOST = 6
BIN_S = 0.1
BINS_AT_MOST = 400
FIRST, STEADY = "#009e73", "#d55e00"


def draw(run: Run) -> Drawing | None:
    """Completions a second over time, with the kills; None without kills or with few tasks."""
    table = run.executions
    ends = table.loc[table["outcome"] == "ok", "end_s"].to_numpy()
    found = recoveries(run.history)
    if not found or len(ends) < SHOWN_FROM_COMPLETIONS:
        return None
    figure, axes = canvas(3.6 + 0.2 * min(len(found), NOTES_AT_MOST))
    bin_s = max(BIN_S, run.end_s / BINS_AT_MOST)
    edges = np.arange(0.0, run.end_s + bin_s, bin_s)
    rates = np.histogram(ends, edges)[0] / bin_s
    axes.stairs(rates, edges, fill=True, color="#8cc5e8", zorder=2)
    top = float(rates.max())
    for place, each in enumerate(found):
        at_s = each.at_ms / 1000
        axes.plot([at_s, at_s], [0, top], color=INK, linewidth=1.4, zorder=4)
        axes.plot(at_s, 0, marker="X", color=INK, markersize=9, markeredgecolor="#ffffff",
                  clip_on=False, zorder=6)
        for span_ms, shape, colour, size in ((each.first_completion_ms, "o", FIRST, 13),
                                             (each.steady_ms, "D", STEADY, 6)):
            if span_ms is not None:
                axes.plot(at_s + span_ms / 1000, 0, marker=shape, color=colour, markersize=size,
                          markeredgecolor="#ffffff", clip_on=False, zorder=5)
        if place < NOTES_AT_MOST:
            axes.text(0.01, top * (1.08 + 0.085 * (min(len(found), NOTES_AT_MOST) - 1 - place)),
                      _note(each), fontsize=8.5, va="bottom", color=INK,
                      transform=axes.get_yaxis_transform())
    axes.set_ylim(0, top * (1.1 + 0.085 * min(len(found), NOTES_AT_MOST)))
    seen_s = [*table["start_s"], *ends, *(each.at_ms / 1000 for each in found)]
    margin_s = 0.03 * (max(seen_s) - min(seen_s))
    axes.set_xlim(min(seen_s) - margin_s, max(seen_s) + margin_s)
    axes.set_ylabel("tasks completed per second", color=FAINT, fontsize=9)
    axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= top])
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    legend: list[Line2D | Patch] = [
        marker("s", f"completed, counted in {bin_s * 1000:.0f} ms", "#8cc5e8"),
        marker("X", "worker killed (SIGKILL)"), marker("o", "first completion after it", FIRST)]
    if any(each.steady_ms is not None for each in found):
        legend.append(marker("D", "80 % of the rate before it", STEADY))
    return finish(figure, _title(found), legend)


def _note(each: Recovery) -> str:
    """One kill in a line."""
    after = ("nothing was completed" if each.first_completion_ms is None else
             f"first completion {number(round(each.first_completion_ms))} ms later")
    steady = ("" if each.steady_ms is None else
              f", 80 % of {each.rate_before_per_s:.0f} per second {number(round(each.steady_ms))} "
              "ms later")
    return (f"{each.at_ms / 1000:.3f} s: {count(len(each.workers), 'worker')} killed; {after}"
            f"{steady}; {count(each.wasted, 'execution')} wasted")


def _title(found: list[Recovery]) -> str:
    wasted = sum(each.wasted for each in found)
    cut = f"{count(wasted, 'execution')} {was(wasted)} wasted"
    waits = [each.first_completion_ms for each in found]
    whose = "the kill" if len(found) == 1 else f"each of {len(found)} kills"
    known = [wait for wait in waits if wait is not None]
    if len(known) < len(waits):
        return f"After {len(waits) - len(known)} of {count(len(found), 'kill')} nothing was " \
               f"completed any more; {cut}"
    within = "" if len(found) == 1 else "at most "
    return f"The first task after {whose} was completed {within}" \
           f"{number(round(max(known)))} ms later; {cut}"

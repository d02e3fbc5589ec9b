"""Who executed what, when, and what befell whom: one lane for each worker process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd
from dtq_conformance.history import Life, Spell
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dtq_reports.plot import (
    ALIVE,
    INK,
    SPELLS,
    STALL,
    Drawing,
    bars,
    canvas,
    finish,
    marker,
    outcome_legend,
    patch,
)
from dtq_reports.read import Run, rows_of
from dtq_reports.words import count, listed, short, was

GAP_IN = 0.22
THICK_BARS_AT_MOST = 200
LINKED_TASKS_AT_MOST = 40
NAMED_TASKS_AT_MOST = 8
CHARACTER = 0.0085
"""The width of a small character, as a share of the axis."""

BEFELL = {
    "stopped": "1 was stopped",
    "terminated": "1 was asked to stop",
    "cut": "1 was cut off",
    "delayed": "1 was slowed down",
    "reply_lost": "1 reply was lost",
    "broker_away": "the broker went away",
    "broker_restarted": "the broker was restarted",
    "power_lost": "the power failed",
    "group_dropped": "the consumer groups were lost",
    "scripts_flushed": "the scripts were lost",
    "out_of_memory": "the broker was out of memory",
    "replaced": "1 was replaced under its id",
    "forged": "the harness itself added an entry",
    "deleted": "the harness itself deleted a task",
}
"""What the title says of a run in which nobody was killed."""


@dataclass(frozen=True)
class Lane:
    """A worker process, its executions with the slot each was in, and its place on the axis."""

    life: Life
    table: pd.DataFrame
    slots: int
    top: float

    @property
    def bottom(self) -> float:
        return self.top + self.slots

    @property
    def middle(self) -> float:
        return self.top + self.slots / 2


def draw(run: Run) -> Drawing | None:
    """One lane for each worker process; None if no worker ever started."""
    lanes = _lanes(run)
    if not lanes:
        return None
    few = len(run.tasks) <= THICK_BARS_AT_MOST
    unit_in = _unit_in(lanes, few=few)
    lanes = _stacked(lanes, gap=GAP_IN / unit_in)
    total = lanes[-1].bottom
    figure, axes = canvas(total * unit_in + 1.6)
    axes.set_xlim(-0.01 * run.end_s, run.end_s * 1.01)
    legend: list[Line2D | Patch] = []
    for lane in lanes:
        _draw_lane(axes, run, lane, edge=0.6 if few else 0.0)
    legend += outcome_legend(run.executions)
    legend += _link_the_repeated(axes, run, lanes, named=few)
    legend += _draw_spells(axes, run, lanes)
    legend += _draw_ends(axes, run, lanes)
    legend.append(patch(ALIVE))
    axes.set_ylim(total + 0.1 / unit_in, 0.0)
    axes.set_yticks([lane.middle for lane in lanes],
                    [f"{lane.life.name}\npid {lane.life.pid}" if lane.slots * unit_in > 0.26
                     else lane.life.name for lane in lanes])
    return finish(figure, _title(run), legend)


def _title(run: Run) -> str:
    head = (f"{count(len(run.tasks), 'task')}, {count(len(run.executions), 'execution')}, "
            f"{count(len(run.workers), 'worker process', 'worker processes')}")
    if run.deaths:
        times = listed([f"{death.at_s:.3f}" for death in run.deaths], at_most=5)
        return f"{head}: {len(run.deaths)} {was(len(run.deaths))} killed, at {times} s"
    told = [f"{BEFELL[spell.effect]} at {run.seconds(spell.from_ns):.3f} s"
            for spell in run.history.spells if spell.effect in BEFELL]
    return f"{head}: {listed(told, at_most=2) or 'none was killed'}"


def _lanes(run: Run) -> list[Lane]:
    lanes: list[Lane] = []
    for life in run.workers:
        table = run.executions[(run.executions["pid"] == life.pid)
                               & (run.executions["worker"] == life.name)]
        slots = _slots(table)
        lanes.append(Lane(life, table.assign(slot=slots), max(slots, default=0) + 1, 0.0))
    return lanes


def _unit_in(lanes: list[Lane], *, few: bool) -> float:
    """The height of one slot in inches: thin bars for many tasks, thinner ones for many slots."""
    return min(0.30 if few else 0.14, 6.5 / sum(lane.slots for lane in lanes))


def _stacked(lanes: list[Lane], *, gap: float) -> list[Lane]:
    """The lanes one below the other, with room above each for a line of text."""
    placed: list[Lane] = []
    bottom = 0.0
    for lane in lanes:
        placed.append(replace(lane, top=bottom + gap))
        bottom = placed[-1].bottom
    return placed


def _slots(table: pd.DataFrame) -> list[int]:
    """Give each execution the first slot that is free when it starts."""
    free_at: list[float] = []
    slots: list[int] = []
    for start_s, end_s in zip(table["start_s"], table["end_s"], strict=True):
        slot = next((place for place, busy_until in enumerate(free_at) if busy_until <= start_s),
                    len(free_at))
        if slot == len(free_at):
            free_at.append(0.0)
        free_at[slot] = end_s
        slots.append(slot)
    return slots


def _draw_lane(axes: Axes, run: Run, lane: Lane, *, edge: float) -> None:
    from_s = run.seconds(lane.life.start_ns)
    to_s = run.end_s if lane.life.exit_ns is None else run.seconds(lane.life.exit_ns)
    axes.broken_barh([(from_s, to_s - from_s)], (lane.top, lane.slots),
                     facecolor=ALIVE.colour, zorder=0)
    for slot, group in lane.table.groupby("slot"):
        bars(axes, group, middle=lane.top + float(str(slot)) + 0.5,
             height=0.78 if edge else 0.9, edge=edge)


def _link_the_repeated(axes: Axes, run: Run, lanes: list[Lane], *,
                       named: bool) -> list[Line2D | Patch]:
    """Lead from each execution to the next one of the same task, and name the task there."""
    every = pd.concat([lane.table.assign(y=lane.table["slot"] + lane.top + 0.5)
                       for lane in lanes])
    repeated = every[every["task_id"].isin(every.loc[every["number"] > 1, "task_id"])]
    tasks = repeated["task_id"].nunique()
    if not 0 < tasks <= LINKED_TASKS_AT_MOST:
        return []
    for task_id, group in repeated.sort_values("number").groupby("task_id"):
        rows = list(rows_of(group))
        for before, after in pairwise(rows):
            axes.annotate("", (after.start_s, after.y), (before.end_s, before.y), zorder=5,
                          arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 0.9,
                                      "shrinkA": 0, "shrinkB": 0,
                                      "connectionstyle": "arc3,rad=-0.12"})
        if named and tasks <= NAMED_TASKS_AT_MOST:
            lost = run.fates[str(task_id)].lost if str(task_id) in run.fates else False
            text = f" {short(str(task_id))}" + (": never executed again" if lost else "")
            axes.text(rows[-1].end_s, rows[-1].y + (0.75 if lost else 0.0), text, fontsize=8,
                      va="center", ha="left", color="#b34700" if lost else INK,
                      fontweight="bold" if lost else "normal", zorder=5)
            over_s = rows[-1].end_s + len(text) * CHARACTER * run.end_s
            axes.set_xlim(right=max(axes.get_xlim()[1], over_s))
    return [Line2D([], [], color=INK, linewidth=0.9, marker=">", markevery=(1, 2), markersize=5,
                   label="executed again")]


def _draw_spells(axes: Axes, run: Run, lanes: list[Lane]) -> list[Line2D | Patch]:
    """Shade what lay on a worker for a time, and in grey what lay on the whole machine."""
    legend: dict[str, Line2D | Patch] = {}
    for spell in run.history.spells:
        look = SPELLS.get(spell.effect)
        if look is None:
            continue
        for lane in _befallen(spell, lanes):
            from_s = run.seconds(max(spell.from_ns, lane.life.start_ns))
            to_s = min(run.end_s if at_ns is None else run.seconds(at_ns)
                       for at_ns in (spell.to_ns, lane.life.exit_ns))
            if from_s > to_s:
                continue
            axes.broken_barh([(from_s, to_s - from_s)], (lane.top - 0.15, lane.slots + 0.3),
                             facecolor=look.colour, alpha=look.alpha, hatch=look.hatch,
                             edgecolor=INK, linewidth=0.5, zorder=2)
        legend[spell.effect] = patch(look)
    for stall in run.history.stalls:
        axes.axvspan(run.seconds(stall.from_ns), run.seconds(stall.to_ns),
                     facecolor=STALL.colour, alpha=STALL.alpha, zorder=1)
        legend["stall"] = patch(STALL)
    return list(legend.values())


def _befallen(spell: Spell, lanes: list[Lane]) -> list[Lane]:
    """The lanes of a fault's victims; a fault that names no process befell them all."""
    return [lane for lane in lanes if not spell.pids or lane.life.pid in spell.pids]


def _draw_ends(axes: Axes, run: Run, lanes: list[Lane]) -> list[Line2D | Patch]:
    """Mark kills, SIGTERMs, and what the harness itself deleted."""
    legend: list[Line2D | Patch] = []
    places = {(lane.life.name, lane.life.pid): lane for lane in lanes}
    for death in run.deaths:
        text = f"killed at {death.at_s:.3f} s" if len(run.deaths) <= 12 else ""
        _mark(axes, places[death.worker, death.pid], death.at_s, "X", text)
    if run.deaths:
        legend.append(marker("X", "worker killed (SIGKILL)"))
    asked = [(run.seconds(spell.from_ns), lane) for spell in run.history.spells
             if spell.effect == "terminated" for lane in _befallen(spell, lanes)]
    for at_s, lane in asked:
        _mark(axes, lane, at_s, "v", f"asked to stop at {at_s:.3f} s")
    if asked:
        legend.append(marker("v", "worker asked to stop (SIGTERM)"))
    deleted = [run.seconds(spell.from_ns) for spell in run.history.spells
               if spell.effect == "deleted"]
    for at_s in deleted:
        axes.axvline(at_s, color=INK, linestyle=":", linewidth=1.2, zorder=6)
    if deleted:
        legend.append(Line2D([], [], color=INK, linestyle=":",
                             label="the harness itself deleted a task"))
    return legend


def _mark(axes: Axes, lane: Lane, at_s: float, shape: str, text: str) -> None:
    """Put a marker on a lane's upper edge, a line down through the lane, and words above it."""
    axes.plot([at_s, at_s], [lane.top, lane.bottom], color=INK, linewidth=1.6, zorder=6)
    axes.plot(at_s, lane.top, marker=shape, color=INK, markersize=9, markeredgecolor="#ffffff",
              zorder=7)
    axes.annotate(text, (at_s, lane.top), xytext=(7, 2), textcoords="offset points",
                  va="bottom", ha="left", fontsize=8.5, color=INK, zorder=7)

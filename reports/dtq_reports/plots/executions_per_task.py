"""How often each task was executed, and what explains each execution after the first."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dtq_reports.plot import (
    FAINT,
    INK,
    OUTCOMES,
    Drawing,
    bars,
    canvas,
    finish,
    marker,
    outcome_legend,
)
from dtq_reports.read import Fate, Run, rows_of
from dtq_reports.words import count, number, short, was

ROWS_AT_MOST = 24
PLAIN_AT_MOST = 60
PLAIN_IN = 0.08
"""The height of a task about which there is nothing to tell."""

COLUMNS = 125
"""So many characters of a note fit into a line."""

AFTER = {
    "failed": "because the attempt before failed",
    "died": "because the process before it ended",
    "let_go": "because the worker before it was asked to stop and let it go",
    "stopped": "because the worker before it was stopped past its lease",
    "cut": "because the worker before it was cut off past its lease",
    "reply_lost": "because a reply to the worker before it was lost",
    "broker_away": "because the broker was away",
    "past_its_limit": "because the handler before it ran past its time limit",
    "stall": "which only a stall of the machine could explain",
    "nothing": "WITHOUT A CAUSE",
}
"""The short words for each cause of `dtq_conformance.justification`."""


@dataclass(frozen=True)
class Row:
    """A row for a task with a history worth telling: its executions and the lines below them."""

    fate: Fate
    table: pd.DataFrame
    lines: list[str]

    @property
    def height_in(self) -> float:
        return 0.32 + 0.16 * len(self.lines)


def draw(run: Run) -> Drawing | None:
    """A row for each task that was not executed just once and well; the others as one block.

    None where the others are all there are, and too many to be seen one by one.
    """
    told = [fate for fate in run.tasks if not _plain(run, fate)]
    told.sort(key=lambda fate: (not fate.lost, -fate.executions, fate.submitted_s))
    rows = [_row(run, fate) for fate in told[:ROWS_AT_MOST]]
    plain = [fate for fate in run.tasks if _plain(run, fate)]
    block = plain if len(plain) <= PLAIN_AT_MOST else []
    if not rows and not block:
        return None
    tops = [sum(row.height_in for row in rows[:place]) for place in range(len(rows) + 1)]
    height_in = tops[-1] + PLAIN_IN * len(block)
    figure, axes = canvas(height_in + 1.5)
    for row, top in zip(rows, tops, strict=False):
        _draw_row(axes, row, top)
    shown = [row.table for row in rows]
    labels = [(top + 0.1, f"task {short(row.fate.task_id)}")
              for row, top in zip(rows, tops, strict=False)]
    if block:
        shown.append(_draw_block(axes, run, block, tops[-1]))
        labels.append((tops[-1] + PLAIN_IN * len(block) / 2,
                       f"{number(len(block))} {'other ' if rows else ''}"
                       f"{'task' if len(block) == 1 else 'tasks'}"))
    axes.set_ylim(height_in + 0.05, -0.05)
    axes.set_xlim(-0.01 * run.end_s, run.end_s * 1.01)
    axes.set_yticks([middle for middle, _ in labels], [label for _, label in labels], fontsize=8)
    legend: list[Line2D | Patch] = [*outcome_legend(pd.concat(shown)),
                                    marker("|", "submitted", FAINT)]
    if any(row.fate.lost for row in rows):
        legend.append(marker("D", "looked at last: not finished", "#d55e00"))
    return finish(figure, title(run), legend)


def _plain(run: Run, fate: Fate) -> bool:
    """Whether there is nothing to tell: executed once, to a good end."""
    return fate.executions == 1 and not fate.lost and \
        run.history.executions[fate.task_id][0].outcome == "ok"


def _draw_block(axes: Axes, run: Run, fates: list[Fate], top: float) -> pd.DataFrame:
    """Thin lines for tasks about which there is nothing to tell, ordered by submission."""
    places = {fate.task_id: top + PLAIN_IN * (place + 0.5) for place, fate in enumerate(fates)}
    table = run.executions[run.executions["task_id"].isin(places)]
    axes.hlines(table["task_id"].map(places), table["start_s"], table["end_s"],
                color=OUTCOMES["ok"].colour, linewidth=PLAIN_IN * 72 * 0.8, zorder=3)
    axes.plot([fate.submitted_s for fate in fates], list(places.values()), marker="|",
              color=FAINT, markersize=PLAIN_IN * 72 * 0.8, linestyle="", zorder=2)
    return table


def title(run: Run) -> str:
    """How many tasks were executed more than once, and whether that is explained."""
    table = run.executions
    total = len(run.tasks)
    never = sum(fate.executions == 0 for fate in run.tasks)
    extra = table[table["number"] > 1]
    tasks = extra["task_id"].nunique()
    if not tasks and not never:
        return (f"Each of {count(total, 'task')} was executed exactly once" if total > 1
                else "1 task was executed exactly once")
    parts = []
    if tasks:
        parts.append(f"{number(tasks)} of {count(total, 'task')} {was(tasks)} executed more than "
                     f"once{_explained(run, extra)}")
    if never:
        parts.append(f"{number(never)} of {count(total, 'task')} {was(never)} never executed")
    return "; ".join(parts)


def _explained(run: Run, extra: pd.DataFrame) -> str:
    unexplained = int((extra["standing"] == "unjustified").sum())
    if unexplained:
        return f", {count(unexplained, 'time')} without a cause"
    if not (extra["standing"] == "justified").all():
        return ", not each with a proven cause"
    killed = {death.pid for death in run.deaths}
    if all(why.earlier.pid in killed and why.cause == "died" for why in run.again.values()):
        return f", {'each ' if len(extra) > 1 else ''}after its worker was killed"
    return f", {'each ' if len(extra) > 1 else ''}with a recorded cause"


def _why(run: Run, pid_before: int | None, cause: str) -> str:
    """What explains an execution after the first, in a few words; a kill is named and timed."""
    killed = [death for death in run.deaths if death.pid == pid_before and cause == "died"]
    if killed:
        return f" because {killed[0].worker} was killed at {killed[0].at_s:.3f} s"
    return f" {AFTER[cause]}" if cause else ""


def _row(run: Run, fate: Fate) -> Row:
    table = run.executions[run.executions["task_id"] == fate.task_id]
    notes = [f"{row.number} on {row.worker}" + _why(run, before, row.cause)
             for before, row in zip([None, *table["pid"]], rows_of(table), strict=False)]
    at = "" if fate.looked_s is None else f" at {fate.looked_s:.3f} s"
    notes.append(("and never again" if notes else "never executed") + f": {fate.status}{at}"
                 if fate.lost or not notes else f"in the end {fate.status}")
    return Row(fate, table, _wrapped(notes))


def _wrapped(notes: list[str]) -> list[str]:
    """Notes set in lines, broken only between two notes."""
    lines = notes[:1]
    for note in notes[1:]:
        if len(lines[-1]) + len(note) < COLUMNS:
            lines[-1] += f"; {note}"
        else:
            lines.append(note)
    return lines


def _draw_row(axes: Axes, row: Row, top: float) -> None:
    middle = top + 0.1
    axes.plot(row.fate.submitted_s, middle, marker="|", color=FAINT, markersize=7, zorder=2)
    bars(axes, row.table, middle=middle, height=0.16, edge=0.5)
    if row.fate.lost and row.fate.looked_s is not None:
        axes.plot(row.fate.looked_s, middle, marker="D", color="#d55e00", markersize=7, zorder=4)
    for execution in rows_of(row.table):
        axes.text(execution.end_s, middle, f" {execution.number}", fontsize=8, va="center",
                  color=INK, fontweight="bold", zorder=4)
    for place, line in enumerate(row.lines):
        axes.text(0.0, top + 0.31 + 0.16 * place, line, fontsize=8, va="center", color=INK,
                  zorder=4)

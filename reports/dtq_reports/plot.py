"""What all plots share: the colours, their legends, the frame, and the way to a PNG.

A plot is a function from a `Run` to a `Drawing`, or to None where it would show nothing. Its title
is a sentence with a number in it. Colours are Okabe and Ito's, which the colour-blind can tell
apart, and each also has a hatch or a marker: nothing is said by colour alone.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dtq_reports.read import Run

INK, FAINT, PAPER = "#1b1b1b", "#6b6b6b", "#ffffff"
WIDTH_IN, DPI = 10.0, 120


@dataclass(frozen=True)
class Look:
    """How one kind of thing is drawn, and what the legend says of it."""

    colour: str
    meaning: str
    hatch: str = ""
    alpha: float = 1.0


OUTCOMES = {
    "ok": Look("#8cc5e8", "executed to a good end"),
    "failed": Look("#e69f00", "handler failed", "xxx"),
    "cancelled": Look("#cc79a7", "handler cancelled", "..."),
    "died": Look("#d55e00", "cut short: its process ended first", "////"),
    "open": Look("#bdbdbd", "no end was recorded", "\\\\\\\\"),
}

SPELLS = {
    "stopped": Look("#9467bd", "stopped (SIGSTOP to SIGCONT)", "---", 0.30),
    "cut": Look("#009e73", "connection cut", "|||", 0.30),
    "delayed": Look("#f0e442", "connection delayed", "...", 0.45),
    "reply_lost": Look("#cc79a7", "reply lost", "***", 0.30),
    "broker_away": Look("#0072b2", "broker away", "ooo", 0.25),
    "broker_restarted": Look("#56b4e9", "broker killed, until it was back with its data", "ooo",
                             0.25),
    "power_lost": Look("#56b4e9", "power failed, until the broker was back", "xxx", 0.25),
    "out_of_memory": Look("#56b4e9", "broker out of memory, refusing new work", "+++", 0.25),
}

STALL = Look("#9e9e9e", "the machine stalled", "", 0.55)

ALIVE = Look("#f1f1f1", "worker process alive")


@dataclass(frozen=True)
class Drawing:
    """A finished figure and its title, which stands for it where it cannot be seen."""

    title: str
    figure: Figure


Plot = Callable[[Run], Drawing | None]


@dataclass(frozen=True)
class Picture:
    """A plot as a PNG file's content."""

    name: str
    title: str
    png: bytes


def canvas(height_in: float) -> tuple[Figure, Axes]:
    """A figure of the common width with one bare axis."""
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=FAINT, labelcolor=INK, length=3, labelsize=9)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("seconds since the run began", color=FAINT, fontsize=9)
    return figure, axes


def finish(figure: Figure, title: str, legend: Iterable[Line2D | Patch]) -> Drawing:
    """Put the title above and the legend below, at the figure's left edge."""
    handles = list(legend)
    height_in = figure.get_size_inches()[1]
    columns = 4
    rows = -(-len(handles) // columns)
    figure.subplots_adjust(left=0.135, right=0.985, top=1 - 0.42 / height_in,
                           bottom=(0.55 + 0.2 * rows) / height_in)
    figure.text(0.008, 1 - 0.1 / height_in, title, ha="left", va="top", fontsize=11.5,
                fontweight="bold", color=INK)
    figure.legend(handles=handles, loc="lower left", ncol=columns, frameon=False, fontsize=8.5,
                  bbox_to_anchor=(0.0, 0.0), handlelength=2.2, columnspacing=1.6,
                  labelcolor=INK, borderaxespad=0.2)
    return Drawing(title, figure)


def patch(look: Look) -> Patch:
    """A legend's entry for a filled thing."""
    return Patch(facecolor=look.colour, hatch=look.hatch, alpha=look.alpha, edgecolor=INK,
                 linewidth=0.4, label=look.meaning)


def marker(shape: str, meaning: str, colour: str = INK) -> Line2D:
    """A legend's entry for a point."""
    return Line2D([], [], marker=shape, color=colour, linestyle="", markersize=7, label=meaning)


def to_png(name: str, drawing: Drawing) -> Picture:
    """Draw it. The bytes are the same for the same run."""
    buffer = io.BytesIO()
    drawing.figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": ""})
    return Picture(name, drawing.title, buffer.getvalue())


def bars(axes: Axes, table: pd.DataFrame, *, middle: float, height: float, edge: float) -> None:
    """Draw executions as bars around `middle`, coloured and hatched by outcome.

    `table` has start_s, end_s and outcome; `edge` is the width of a bar's outline in points.
    """
    for outcome, group in table.groupby("outcome"):
        look = OUTCOMES[str(outcome)]
        spans = list(zip(group["start_s"], group["end_s"] - group["start_s"], strict=True))
        axes.broken_barh(spans, (middle - height / 2, height), facecolor=look.colour,
                         hatch=look.hatch, edgecolor=INK if look.hatch else PAPER,
                         linewidth=edge, zorder=3)


def outcome_legend(table: pd.DataFrame) -> list[Line2D | Patch]:
    """A legend's entry for each outcome that occurs."""
    return [patch(look) for name, look in OUTCOMES.items() if (table["outcome"] == name).any()]

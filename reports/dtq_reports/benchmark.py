"""The picture of a benchmark: this engine beside its peers, each with what it promises.

Comes in: the JSON file that `dtq-load bench` writes. Goes out: a PNG file beside it. A bar is a
median, a whisker the range of the rounds; below stands what becomes of a task when its worker
dies, so that speed is not shown without what was paid for it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import msgspec
from dtq_conformance.exits import InputError
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dtq_reports.plot import DPI, FAINT, INK, PAPER

PANELS = (
    ("one_worker_per_s", "drained by one worker, tasks/s", "→"),
    ("two_workers_per_s", "drained by two workers, tasks/s", "→"),
    ("submit_per_s", "submitted one by one, tasks/s", "→"),
    ("submit_bulk_per_s", "submitted in bulk, tasks/s", "→"),
    ("idle_p50_ms", "idle: submit to result, p50, ms", "←"),
    ("round_trips_per_task", "round trips per task", "←"),
    ("worker_cpu_s_per_10k", "worker's CPU, s per 10,000 tasks", "←"),
    ("server_cpu_s_per_10k", "server's CPU, s per 10,000 tasks", "←"),
    ("rss_mb", "memory of a worker, MB", "←"),
)
"""What is drawn: a figure's name, its title, and where better is."""

OURS, OTHERS = "#56b4e9", "#c9c9c9"
COLUMNS, WIDTH_IN, PANEL_IN = 3, 12.0, 2.1


def read(path: Path) -> dict[str, Any]:
    """The benchmark of this file. Raises `InputError` if it holds none."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict) or "ratios" not in found or "peers" not in found:
        raise InputError(f"{path} is not a file that `dtq-load bench` has written.")
    return found


def title_of(benchmark: dict[str, Any]) -> str:
    """One sentence: how fast one worker was, and how many times the next best of them."""
    speeds = {peer["name"]: peer["figures"]["one_worker_per_s"]["median"]
              for peer in drawn(benchmark) if "one_worker_per_s" in peer["figures"]}
    if "dtq" not in speeds:
        return "Drained by one worker: dtq was not measured"
    ours = speeds.pop("dtq")
    if not speeds:
        return f"One worker of dtq drained {ours:,.0f} tasks/s"
    best = max(speeds, key=speeds.__getitem__)
    return (f"One worker of dtq drained {ours:,.0f} tasks/s, "
            f"{ours / speeds[best]:.1f} times the next best peer, {best}")


def drawn(benchmark: dict[str, Any]) -> list[dict[str, Any]]:
    """The peers of which there are figures."""
    return [peer for peer in benchmark["peers"] if peer["figures"]]


def draw(benchmark: dict[str, Any]) -> Figure:
    """All panels on one sheet."""
    peers = drawn(benchmark)
    panels = [panel for panel in PANELS if any(panel[0] in peer["figures"] for peer in peers)]
    deep = any(name.startswith("cost_us_") for peer in peers for name in peer["figures"])
    rows = -(-(len(panels) + deep) // COLUMNS)
    words = guarantees(peers)
    text_in = 0.17 * (words.count("\n") + 4)
    height_in = rows * PANEL_IN + text_in + 0.5
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    for place, (name, title, better) in enumerate(panels, 1):
        _bars(figure.add_subplot(rows, COLUMNS, place), peers, name, f"{title} {better}")
    if deep:
        _depths(figure.add_subplot(rows, COLUMNS, len(panels) + 1), peers)
    figure.tight_layout(rect=(0, text_in / height_in, 1, 1 - 0.4 / height_in))
    figure.text(0.01, 1 - 0.1 / height_in, title_of(benchmark), ha="left", va="top",
                fontsize=11.5, fontweight="bold", color=INK)
    machine = benchmark["machine"]
    figure.text(0.01, 0.1 / height_in, words + "\n\n"
                f"Medians over {benchmark['rounds']} round(s), whiskers the range; better is where "
                f"the arrow points. {benchmark['broker']}, persistence "
                f"{benchmark['persistence']}; {machine['cpus']} × {machine['cpu']}.",
                ha="left", va="bottom", fontsize=8, color=INK)
    return figure


def guarantees(peers: list[dict[str, Any]]) -> str:
    """What each peer promises, and with how large a worker it was measured."""
    return "\n".join(textwrap.fill(
        f"{peer['name']} {peer['version']} ({peer['size']}): {peer['guarantee']}", 190,
        subsequent_indent="    ") for peer in peers)


def _bars(axes: Axes, peers: list[dict[str, Any]], name: str, title: str) -> None:
    found = [(peer["name"], peer["figures"][name]) for peer in peers if name in peer["figures"]]
    found.reverse()
    medians = [figure["median"] for _, figure in found]
    spans = [[median - figure["low"] for median, (_, figure) in zip(medians, found, strict=True)],
             [figure["high"] - median for median, (_, figure) in zip(medians, found, strict=True)]]
    axes.barh([peer for peer, _ in found], medians, xerr=spans, ecolor=INK,
              color=[OURS if peer == "dtq" else OTHERS for peer, _ in found],
              error_kw={"linewidth": 0.8, "capsize": 2})
    for place, (median, (_, figure)) in enumerate(zip(medians, found, strict=True)):
        axes.annotate(f"{median:,.0f}" if median >= 100 else f"{median:.2g}",
                      (figure["high"], place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=8)
    axes.margins(x=0.16)
    _frame(axes, title)


def _depths(axes: Axes, peers: list[dict[str, Any]]) -> None:
    """What a task costs, by how many are queued."""
    for peer, marker in zip(peers, "osD^vP*Xhd", strict=False):
        points = sorted((int(name.rsplit("_", 1)[1]), figure["median"])
                        for name, figure in peer["figures"].items() if name.startswith("cost_us_"))
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=4, linewidth=1,
                      label=peer["name"], color=OURS if peer["name"] == "dtq" else FAINT)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
    _frame(axes, "cost of a task, µs, by tasks queued ↓")


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=9, loc="left", color=INK)
    axes.tick_params(colors=FAINT, labelcolor=INK, labelsize=8, length=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def write(path: Path, folder: Path | None = None) -> Path:
    """Draw the benchmark of this file; returns the picture's path."""
    picture = (folder or path.parent) / f"{path.stem}.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw(read(path)).savefig(picture, dpi=DPI, metadata={"Software": ""})
    return picture

"""The figures of the benchmark: what each is called, its unit, and which of two is better.

Comes in: values, one a round. Goes out: their median and range. This is the one list of figures:
the table, the plot and the ratios read it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True)
class Kind:
    """One kind of figure. `title` and `unit` are for people."""

    title: str
    unit: str
    more_is_better: bool = False


FIGURES: dict[str, Kind] = {
    "one_worker_per_s": Kind("drained by one worker", "tasks/s", True),
    "two_workers_per_s": Kind("drained by two workers", "tasks/s", True),
    "submit_per_s": Kind("submitted one by one", "tasks/s", True),
    "submit_bulk_per_s": Kind("submitted in bulk", "tasks/s", True),
    "idle_p50_ms": Kind("idle, submit to result, p50", "ms"),
    "idle_p95_ms": Kind("idle, submit to result, p95", "ms"),
    "idle_p99_ms": Kind("idle, submit to result, p99", "ms"),
    "round_trips_per_task": Kind("round trips per task", ""),
    "client_commands_per_task": Kind("commands per task, sent by clients", ""),
    "script_commands_per_task": Kind("commands per task, inside scripts", ""),
    "commands_per_task": Kind("commands per task, all", ""),
    "worker_cpu_s_per_10k": Kind("worker's CPU per 10,000 tasks", "s"),
    "server_cpu_s_per_10k": Kind("server's CPU per 10,000 tasks", "s"),
    "rss_mb": Kind("memory of a worker, all its processes", "MB"),
    "rss_leader_mb": Kind("memory of its first process", "MB"),
}


def depth_figure(depth: int) -> str:
    """The name of the figure for what a task costs with so many queued."""
    return f"cost_us_at_{depth}"


def kind_of(name: str) -> Kind:
    """What this figure is."""
    if name in FIGURES:
        return FIGURES[name]
    depth = int(name.removeprefix("cost_us_at_"))
    return Kind(f"cost of a task, {depth:,} queued", "µs")


class Figure(msgspec.Struct, frozen=True):
    """A figure over the rounds."""

    median: float
    low: float
    high: float
    values: list[float]


def figure(values: Sequence[float]) -> Figure:
    """Median and range of at least one value."""
    return Figure(statistics.median(values), min(values), max(values), list(values))


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)]

"""How long each retry waited, against the envelope that the contract promises for its attempt."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dtq_reports.plot import FAINT, Drawing, Look, canvas, finish, marker, patch
from dtq_reports.read import Run
from dtq_reports.words import count, number

SHOWN_FROM_DELAYS = 5
SHORT_MS = 2
"""By how much a delay may seem short: both ends are whole milliseconds of another clock."""

LATE_MS = 500
"""How late a due task may be started beyond one interval of the scheduler, by the contract."""

ENVELOPE = Look("#8cc5e8", "the promised delay with its jitter")
ALLOWED = Look("#e3e3e3", "late, as the contract allows while a worker has room")
INSIDE, SHORT, LATE = "#0072b2", "#d55e00", "#e69f00"


@dataclass(frozen=True)
class Delay:
    """From the end of failed attempt `attempt` to the next start, beside its envelope; all ms."""

    attempt: int
    waited_ms: float
    least_ms: float
    most_ms: float
    allowed_ms: float

    @property
    def colour(self) -> str:
        if self.waited_ms < self.least_ms - SHORT_MS:
            return SHORT
        return INSIDE if self.waited_ms <= self.allowed_ms else LATE


def delays_of(run: Run) -> list[Delay]:
    """Every start after a failed attempt, ordered by attempt and then by start.

    min(max_delay, base * 2^(n-1)) * (1 ± jitter): the contract's section on retries.
    """
    timing = run.history.header.timing
    found = []
    for executions in run.history.executions.values():
        for before, after in pairwise(executions):
            if (before.outcome == "failed" and before.end_ns is not None
                    and after.attempt == before.attempt + 1):
                nominal = min(timing.max_delay_ms,
                              timing.base_delay_ms * 2.0 ** (before.attempt - 1))
                most = nominal * (1 + timing.jitter)
                found.append((after.start_ns, Delay(
                    before.attempt, (after.start_ns - before.end_ns) / 1e6,
                    nominal * (1 - timing.jitter), most, most + timing.schedule_ms + LATE_MS)))
    return [delay for _, delay in sorted(found, key=lambda each: (each[1].attempt, each[0]))]


def draw(run: Run) -> Drawing | None:
    """A point for each retry in the column of its attempt; None where there are few."""
    delays = delays_of(run)
    if len(delays) < SHOWN_FROM_DELAYS:
        return None
    figure, axes = canvas(4.4)
    attempts = []
    for place, (attempt, group) in enumerate(groupby(delays, lambda delay: delay.attempt)):
        column = list(group)
        attempts.append(f"attempt {attempt} ({number(len(column))})")
        one = column[0]
        for look, low, high in ((ALLOWED, one.most_ms, one.allowed_ms),
                                (ENVELOPE, one.least_ms, one.most_ms)):
            axes.fill_between([place - 0.42, place + 0.42], low, high, color=look.colour,
                              linewidth=0, zorder=1)
        for number_in, delay in enumerate(column):
            axes.plot(place - 0.38 + 0.76 * (number_in + 0.5) / len(column), delay.waited_ms,
                      marker="." if delay.colour == INSIDE else "X", color=delay.colour,
                      markersize=5 if len(delays) < 400 else 3, zorder=3)
    axes.set_ylim(0, max(max(d.waited_ms, d.allowed_ms) for d in delays) * 1.03)
    axes.set_xlim(-0.55, len(attempts) - 0.45)
    axes.set_xticks(range(len(attempts)), attempts)
    axes.set_xlabel("the attempt that failed (how many retries), each column in order of starts",
                    color=FAINT, fontsize=9)
    axes.set_ylabel("milliseconds until the next start", color=FAINT, fontsize=9)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    return finish(figure, _title(delays), _legend(delays))


def _legend(delays: list[Delay]) -> list[Line2D | Patch]:
    colours = {delay.colour for delay in delays}
    points: list[Line2D | Patch] = [
        marker(shape, meaning, colour) for shape, meaning, colour in (
            (".", "a retry", INSIDE), ("X", "too early", SHORT),
            ("X", "later than that", LATE)) if colour in colours]
    return [patch(ENVELOPE), patch(ALLOWED), *points]


def _title(delays: list[Delay]) -> str:
    early = sum(delay.colour == SHORT for delay in delays)
    late = sum(delay.colour == LATE for delay in delays)
    said = (f"{number(early)} came too early" if early else "none came too early")
    if late:
        said += f", {number(late)} later than an idle worker may"
    return (f"{count(len(delays), 'retry', 'retries')} waited from "
            f"{number(round(min(d.waited_ms for d in delays)))} to "
            f"{number(round(max(d.waited_ms for d in delays)))} ms; {said}")

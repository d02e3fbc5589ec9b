"""How a target came back after each kill: measured, not judged.

Comes in: a `History`. Goes out: one `Recovery` for each instant at which workers were killed, by
a fault or by what they executed. `trial` writes them as recovery.json beside the history; whoever
has only the history measures again and gets the same. What the lab ends when a run is over, and a
producer's death, are no kills here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dtq_conformance import evidence
from dtq_conformance.history import Execution, History, Life

FILE = "recovery.json"

STEADY_SHARE = 0.8
"""The rate is steady again when it reaches this share of the rate before the kill."""
WINDOWS_IN_A_LEASE = 2
"""Rates are counted in windows of half a lease: long beside a task, short beside a recovery."""


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What followed one kill. Times are counted from the kill, `at_ms` from the run's beginning.

    A completion is the end of a handler that ended well. Rates are counted in windows of
    `window_ms`: the rate before the kill in the one that ends with it, less what came before the
    run's first start. `steady_ms` is the time until the beginning of the first window in which the
    rate reached 80 % of that; None if none did before the next kill or the end of the work, or if
    nothing had been completed before. `wasted` counts the executions that the kill cut short.
    """

    at_ms: float
    workers: tuple[str, ...]
    first_completion_ms: float | None
    window_ms: int
    rate_before_per_s: float
    steady_ms: float | None
    wasted: int


def recoveries(history: History) -> list[Recovery]:
    """One for each kill, ordered by time. Workers killed by one fault are one kill."""
    kills = _kills(history)
    executions = [e for each in history.executions.values() for e in each]
    instants = [at_ns for at_ns, _ in kills]
    return [_measure(history, at_ns, lives, executions, next_ns)
            for (at_ns, lives), next_ns in zip(kills, [*instants[1:], None], strict=False)]


def read(folder: Path | None) -> list[Recovery]:
    """What was measured in the run of this folder; empty if nobody was killed in it."""
    path = None if folder is None else folder / FILE
    if path is None or not path.is_file():
        return []
    return msgspec.json.decode(path.read_bytes(), type=list[Recovery])


def _kills(history: History) -> list[tuple[int, list[Life]]]:
    """Each instant of a kill with the workers that it struck."""
    over_ns = max((o.asked_ns for o in history.operations), default=history.end_ns)
    struck: dict[int, list[Life]] = {}
    for life in history.lives:
        if (life.role == "worker" and life.signal == 9 and life.exit_ns is not None
                and life.exit_ns <= over_ns):
            struck.setdefault(_sent_ns(history, life, life.exit_ns), []).append(life)
    return sorted(struck.items(), key=lambda kill: kill[0])


def _sent_ns(history: History, life: Life, exit_ns: int) -> int:
    """When the kill was sent, if a fault says so: the lab may hear of the exit later."""
    return min([exit_ns, *(spell.from_ns for spell in history.spells
                           if spell.effect == "killed" and life.pid in spell.pids
                           and life.start_ns <= spell.from_ns <= exit_ns)])


def _measure(history: History, at_ns: int, lives: list[Life], executions: list[Execution],
             next_ns: int | None) -> Recovery:
    """What a victim still completes between the sending of the kill and its death does not count
    as what came after it."""
    window_ns = history.header.timing.lease_ms * evidence.MS // WINDOWS_IN_A_LEASE
    from_ns = max(at_ns - window_ns, min((e.start_ns for e in executions), default=at_ns))
    ended = sorted((e.end_ns, evidence.life(history, e) in lives) for e in executions
                   if e.outcome == "ok" and e.end_ns is not None)
    before = sum(from_ns <= end_ns < at_ns for end_ns, _ in ended)
    rate_per_s = before / (at_ns - from_ns) * 1e9 if at_ns > from_ns else 0.0
    after = [end_ns for end_ns, by_victim in ended if end_ns > at_ns and not by_victim]
    steady_ns = _steady_ns(after, at_ns, window_ns, rate_per_s, next_ns)
    return Recovery(
        at_ms=_ms(at_ns - history.header.began_ns), workers=tuple(life.name for life in lives),
        first_completion_ms=_ms(after[0] - at_ns) if after else None,
        window_ms=window_ns // evidence.MS, rate_before_per_s=round(rate_per_s, 1),
        steady_ms=None if steady_ns is None else _ms(steady_ns - at_ns),
        wasted=sum(e.end_ns is None and evidence.life(history, e) in lives for e in executions))


def _steady_ns(after: Sequence[int], at_ns: int, window_ns: int, rate_per_s: float,
               next_ns: int | None) -> int | None:
    """The beginning of the first window after the kill in which enough was completed: the kill
    itself opens one, each completion another."""
    needed = rate_per_s * STEADY_SHARE * window_ns / 1e9
    if not needed:
        return None
    for place, opened_ns in enumerate((at_ns, *after)):
        closes_ns = opened_ns + window_ns
        if next_ns is not None and closes_ns > next_ns:
            return None
        if bisect_right(after, closes_ns) - max(place - 1, 0) >= needed:
            return opened_ns
    return None


def _ms(span_ns: int) -> float:
    return round(span_ns / evidence.MS, 1)

"""Which trials have shown each broken engine to be wrong, and how few of them are enough.

Comes in: what a whole selftest found. Goes out: `targets/broken/shown_in.json`, and from it the
trials that the selftest puts an engine through when it is not asked for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "targets" / "broken" / "shown_in.json"

ENOUGH = 3
"""How many of the trials that convicted an engine it is put through again; more if it has more
checkers that must convict it, each in another trial."""

KEPT = 10
"""How many trials are kept for an engine and a checker. Some engines are convicted in all."""

Shown = dict[str, dict[str, list[str]]]
"""Engine, a checker of its `caught_by`, the trials in which that convicted it: those that did so
in the record before too come first, then the quicker ones."""


def read(file: Path = FILE) -> Shown:
    """What was recorded last."""
    return msgspec.json.decode(file.read_bytes(), type=Shown)


def write(found: Mapping[str, Mapping[str, Sequence[str]]], file: Path = FILE) -> None:
    """Record what a whole selftest found of these engines, trials from the quickest on. Of other
    engines the record stays."""
    before = read(file) if file.exists() else {}
    merged = dict(before)
    for engine, by in found.items():
        known = before.get(engine, {})
        merged[engine] = {checker: _steady(trials, known.get(checker, []))
                          for checker, trials in sorted(by.items())}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(merged.items()))),
                                         indent=1) + b"\n")


def _steady(trials: Sequence[str], before: Sequence[str]) -> list[str]:
    return sorted(trials, key=lambda trial: trial not in before)[:KEPT]


def enough(recorded: Mapping[str, Sequence[str]], caught_by: Sequence[str],
           trials: Sequence[str]) -> dict[str, list[str]] | None:
    """A few of these trials, each with the checkers that must convict in it, so that all of
    `caught_by` do. None where the record is not enough for that, and all have to be run."""
    known = {checker: [trial for trial in recorded.get(checker, []) if trial in trials]
             for checker in caught_by}
    if not all(known.values()):
        return None
    picked: list[str] = []
    for by in known.values():
        if not set(by) & set(picked):
            picked.append(by[0])
    more = [trial for by in known.values() for trial in by if trial not in picked]
    picked += list(dict.fromkeys(more))[:max(0, ENOUGH - len(picked))]
    return {trial: [checker for checker, by in known.items() if trial in by] for trial in picked}


def sample(engine: str, trials: Sequence[str], count: int, seed: int) -> list[str]:
    """Some of the other trials, drawn anew for each seed and each engine."""
    drawn = random.Random(f"{seed} {engine}").sample(trials, min(count, len(trials)))
    return sorted(drawn, key=trials.index)

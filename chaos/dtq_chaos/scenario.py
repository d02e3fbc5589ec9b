"""A scenario: a story told with faults. What is set up, which faults are planned, what proves
that they bit, and which clauses the story is about."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec
from dtq_conformance.bench import Bench
from dtq_conformance.trial import BASE_DELAY_MS, DRAIN_MS, MAX_DELAY_MS, Trial

from dtq_chaos.fault import Stage
from dtq_chaos.faults import FAULTS
from dtq_chaos.marks import ReadMark
from dtq_chaos.schedule import Ask, Entry, Schedule


@dataclass(frozen=True)
class Scenario:
    """`plan` makes the faults in advance from a seeded random source; `set_up` starts workers
    and submits work; `meanwhile` is done while the faults that last still lie on their victims, and
    `afterwards` when all are mended. `recovery_more_ms` is what the contract allows these faults
    beyond the recovery time that a target declares. `needs` are claims without which the story
    cannot be told, for instance redis-schema where a fault or a mark reads the broker's keys.
    A storm also plans what is `asked` meanwhile, plays its schedule itself (`play`), and has its
    marks made for it (`marks_of`)."""

    name: str
    story: str
    clauses: tuple[str, ...]
    plan: Callable[[random.Random], list[Entry]]
    set_up: Callable[[Stage], None]
    marks: tuple[ReadMark, ...]
    afterwards: Callable[[Stage], None] | None = None
    meanwhile: Callable[[Stage], None] | None = None
    asked: Callable[[random.Random], list[Ask]] | None = None
    play: Callable[[Stage, Schedule], None] | None = None
    marks_of: Callable[[Schedule], tuple[ReadMark, ...]] | None = None
    drain_ms: int = DRAIN_MS
    recovery_more_ms: int = 0
    base_delay_ms: int = BASE_DELAY_MS
    max_delay_ms: int = MAX_DELAY_MS
    persistence: str = "none"
    needs_toxiproxy: bool = False
    needs: tuple[str, ...] = ()
    expects: Literal["holds", "violated"] = "holds"


def planned(scenario: Scenario, *, target: str, broker: str, seed: int) -> Schedule:
    """The schedule of a run, made in advance from its seed."""
    asks = scenario.asked(random.Random(f"asks {seed}")) if scenario.asked else []
    return Schedule(scenario=scenario.name, target=target, broker=broker, seed=seed,
                    entries=scenario.plan(random.Random(f"plan {seed}")), asks=asks)


def as_trial(scenario: Scenario, schedule: Schedule, *, with_faults: bool) -> Trial:
    """The scenario with this schedule, as a trial that the harness can conduct."""

    def drive(bench: Bench) -> None:
        stage = Stage(bench, FAULTS, target=schedule.target, with_faults=with_faults)
        scenario.set_up(stage)
        if scenario.play is None:
            stage.play(schedule.entries)
        else:
            scenario.play(stage, schedule)
        if scenario.meanwhile is not None:
            scenario.meanwhile(stage)
        stage.heal()
        if scenario.afterwards is not None:
            scenario.afterwards(stage)

    marks = scenario.marks + (scenario.marks_of(schedule) if scenario.marks_of else ())
    return Trial("chaos", scenario.name, scenario.story, scenario.clauses, drive,
                 marks=marks, drain_ms=scenario.drain_ms,
                 recovery_more_ms=scenario.recovery_more_ms,
                 base_delay_ms=scenario.base_delay_ms, max_delay_ms=scenario.max_delay_ms,
                 persistence=scenario.persistence, needs=scenario.needs,
                 expects=scenario.expects, snapshots=True,
                 files={"schedule.json": msgspec.to_builtins(schedule)})

"""One trial from beginning to end: a case or a scenario, in this process, with its own broker.

The life of a run is the list in `conduct`. The history is saved before it is judged.
"""

from __future__ import annotations

import contextlib
import platform
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from dtq_conformance import history, recovery
from dtq_conformance.audit import audit
from dtq_conformance.bench import Bench
from dtq_conformance.history import Header, History, Mark, Timing
from dtq_conformance.judging import judge_history
from dtq_conformance.lab import Lab
from dtq_conformance.snapshot import Snapshot
from dtq_conformance.snapshot_taker import SnapshotTaker
from dtq_conformance.target import TargetKind
from dtq_conformance.verdict import RunVerdict

LEASE_MS = 1_000
HEARTBEAT_MS = 200
REAP_MS = 200
SCHEDULE_MS = 50
DRAIN_MS = 3_000
BASE_DELAY_MS = 100
MAX_DELAY_MS = 800
JITTER = 0.2
KEY_MS = 86_400_000


@dataclass(frozen=True)
class Trial:
    """What is to be tried. `drive` works the bench; `marks` read the proof that faults bit.

    `clauses` are those that the trial sets out to test. A trial that `expects` a violation is
    one in which the harness itself does the harm. `recovery_more_ms` is what the contract allows
    this trial's faults beyond the recovery time that the target declares. `needs` are claims
    without which the steps make no sense: who does not make them is not put through the trial.
    `snapshots` are taken while it runs, of a target whose key space can be read. `settings` are
    DTQ_ variables that the target runs with, beside those of its timing.
    """

    room: str
    name: str
    story: str
    clauses: tuple[str, ...]
    drive: Callable[[Bench], None]
    marks: tuple[Callable[[History], Mark], ...] = ()
    drain_ms: int = DRAIN_MS
    base_delay_ms: int = BASE_DELAY_MS
    max_delay_ms: int = MAX_DELAY_MS
    jitter: float = JITTER
    key_ms: int = KEY_MS
    recovery_more_ms: int = 0
    persistence: str = "none"
    expects: Literal["holds", "violated"] = "holds"
    needs: tuple[str, ...] = ()
    snapshots: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """How a trial is run: `repeat` is the command that runs it again."""

    out: Path
    broker: str
    seed: int
    with_faults: bool
    repeat: str


@dataclass(frozen=True)
class Run:
    """A run that was saved and judged."""

    folder: Path
    verdict: RunVerdict


@dataclass(frozen=True)
class Begun:
    """A run that has begun: its name, its folder and its first instant, on both clocks."""

    run_id: str
    folder: Path
    at: str
    at_ns: int


def begin(trial: str, out: Path) -> Begun:
    """Name a run of this trial now; nothing is made yet."""
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{trial}-{secrets.token_hex(3)}"
    return Begun(run_id, out / run_id, datetime.now(UTC).isoformat(), time.monotonic_ns())


def conduct(trial: Trial, kind: TargetKind, options: Options) -> Run:
    """Run a trial in a lab of its own, save its history, judge it."""
    begun = begin(trial.name, options.out)
    timing = Timing(lease_ms=LEASE_MS, heartbeat_ms=HEARTBEAT_MS, reap_ms=REAP_MS,
                    schedule_ms=SCHEDULE_MS, drain_ms=trial.drain_ms,
                    recovery_ms=kind.recovery_ms + trial.recovery_more_ms,
                    base_delay_ms=trial.base_delay_ms, max_delay_ms=trial.max_delay_ms,
                    jitter=trial.jitter, key_ms=trial.key_ms)
    with Lab(begun.folder / "logs", broker=options.broker, persistence=trial.persistence) as lab:
        for name, content in trial.files.items():
            (begun.folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(content)))
        with contextlib.closing(Bench(lab, kind, timing, options.seed,
                                      trial.settings)) as bench:
            found = carry_out(trial, kind, options, begun, bench)
    return save(trial, found, begun.folder)


def carry_out(trial: Trial, kind: TargetKind, options: Options, begun: Begun,
              bench: Bench) -> History:
    """Drive the trial on this bench, wait for quiescence, look at every task, stop the workers."""
    lab = bench.lab
    with _snapshots(trial, bench, options.seed) as snapshots:
        trial.drive(bench)
        bench.await_all_terminal()
        _look_at_everything(bench)
        bench.stop_workers()
        _look_at_everything(bench)
    header = Header(
        format=history.FORMAT, run_id=begun.run_id, room=trial.room, trial=trial.name,
        target=kind.name, claims=sorted(kind.claims), broker=lab.broker.description,
        seed=options.seed, began_at=begun.at, began_ns=begun.at_ns,
        with_faults=options.with_faults, timing=bench.timing, clauses=list(trial.clauses),
        versions=_versions(), repeat=options.repeat, expects=trial.expects,
        settings=bench.settings)
    keys = [audit(bench.keyspace.client, bench.keyspace.prefix)] \
        if "redis-schema" in kind.claims else []
    return History(header, (*bench.records, *lab.witness_lines(), *lab.process_records(),
                            *lab.pace(), *keys, *snapshots))


def save(trial: Trial, found: History, folder: Path) -> Run:
    """Read the marks, save the history in the run's folder, and judge what was saved."""
    marks = [mark(found) for mark in trial.marks]
    history.write(folder / "history.jsonl", found.header, [*found.records, *marks])
    saved = history.read(folder / "history.jsonl")
    verdict = judge_history(saved)
    (folder / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    measured = recovery.recoveries(saved)
    if measured:
        (folder / recovery.FILE).write_bytes(msgspec.json.format(msgspec.json.encode(measured)))
    return Run(folder, verdict)


@contextlib.contextmanager
def _snapshots(trial: Trial, bench: Bench, seed: int) -> Iterator[list[Snapshot]]:
    """The list that snapshots are put into while the block runs; it is whole at the block's end."""
    if not (trial.snapshots and bench.has_schema):
        yield []
        return
    with SnapshotTaker(bench.lab.broker, seed) as taker:
        yield taker.records


def _look_at_everything(bench: Bench) -> None:
    for task_id in bench.submissions:
        bench.look(task_id)
    bench.ask_dead_letters()


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), "dtq-contract": version("dtq-contract"),
            "system": f"{platform.system()} {platform.machine()}"}

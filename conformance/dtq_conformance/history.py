"""The record of one run: JSON lines with a header and a footer, saved before it is judged.

Comes in: operations, witness lines, process starts and exits, faults, marks, the pacemaker.
Goes out: a file that anyone can judge again, and `History`, the same as Python values.
All times are CLOCK_MONOTONIC nanoseconds of one machine.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from dtq_conformance.key_table import KeysAtRest
from dtq_conformance.operation import Operation, by_task
from dtq_conformance.snapshot import Snapshot

FORMAT = 1

Effect = Literal["killed", "terminated", "stopped", "cut", "delayed", "reply_lost",
                 "broker_away", "broker_restarted", "group_dropped", "replaced", "forged",
                 "deleted"]


class HistoryError(Exception):
    """A history that cannot be judged: cut short, altered, newer than this program, not one."""


class Timing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The intervals that the target ran with, in milliseconds; `jitter` is a share of a delay,
    `key_ms` how long an idempotency key outlives its task."""

    lease_ms: int
    heartbeat_ms: int
    reap_ms: int
    schedule_ms: int
    drain_ms: int
    recovery_ms: int
    base_delay_ms: int
    max_delay_ms: int
    jitter: float
    key_ms: int = 86_400_000


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
             tag_field="kind", tag="header"):
    """Which run this was. `clauses` are those that the trial sets out to test.

    `expects` is "violated" where the harness itself does the harm, so that the judge is tested.
    """

    format: int
    run_id: str
    room: str
    trial: str
    target: str
    claims: list[str]
    broker: str
    seed: int
    began_at: str
    began_ns: int
    with_faults: bool
    timing: Timing
    clauses: list[str]
    versions: dict[str, str]
    repeat: str
    expects: Literal["holds", "violated"] = "holds"


class Witness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
              tag_field="kind", tag="witness"):
    """A line that a handler wrote, outside the queue, when it started or ended."""

    at_ns: int
    event: Literal["start", "end"]
    task_id: str
    attempt: int
    worker_id: str
    pid: int
    label: str = ""
    outcome: Literal["ok", "failed", "cancelled"] | None = None


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
              tag_field="kind", tag="process"):
    """A process of the lab started or ended. `asked` says what the lab last sent it, if any.

    `name` is the lab's name ("worker-1"), unique in a run; `signal` the one it died of;
    `concurrency` stands in the start of a worker.
    """

    at_ns: int
    event: Literal["start", "exit"]
    role: str
    name: str
    pid: int
    exit_code: int | None = None
    signal: int | None = None
    asked: str = ""
    concurrency: int | None = None


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            tag_field="kind", tag="fault"):
    """A fault began, bit (its effect was seen from outside) or ended.

    `number` is its place in the schedule; `effect` is what it does to its victim, which is all
    that checkers look at; `pids` are the worker processes that it befalls.
    """

    at_ns: int
    fault: str
    number: int
    phase: Literal["begin", "bit", "end"]
    effect: Effect
    pids: list[int] = []
    detail: dict[str, Any] = {}


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
           tag_field="kind", tag="mark"):
    """Proof, read outside the engine, that a fault bit as the scenario meant it to."""

    name: str
    held: bool
    sentence: str
    evidence: dict[str, Any] = {}


class Stall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            tag_field="kind", tag="stall"):
    """The machine gave the pacemaker no time between these two instants."""

    from_ns: int
    to_ns: int


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
           tag_field="kind", tag="pace"):
    """What the pacemaker saw over the whole run."""

    beats: int
    first_ns: int
    last_ns: int
    longest_gap_ms: float


class Footer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
             tag_field="kind", tag="footer"):
    """The number of lines above this one, the header included, and their SHA-256."""

    lines: int
    sha256: str


Record = Operation | Witness | Process | Fault | Mark | Stall | Pace | KeysAtRest | Snapshot
_Line = Header | Record | Footer

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Line)


@dataclass(frozen=True)
class Execution:
    """One run of a handler: a start and, unless the process died or it still runs, its end."""

    task_id: str
    attempt: int
    worker_id: str
    pid: int
    label: str
    start_ns: int
    end_ns: int | None
    outcome: str | None


@dataclass(frozen=True)
class Life:
    """One worker process from its start to its exit (`None` while it lives)."""

    name: str
    pid: int
    role: str
    start_ns: int
    exit_ns: int | None
    exit_code: int | None
    signal: int | None
    asked: str
    concurrency: int | None


@dataclass(frozen=True)
class Spell:
    """A time during which a fault lay on some processes: `to_ns` is None if it never ended."""

    fault: str
    effect: Effect
    pids: frozenset[int]
    from_ns: int
    to_ns: int | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class History:
    """A whole run, as read from its file. Derived views are computed once, when asked for."""

    header: Header
    records: tuple[Record, ...]

    def of(self, kind: type[Any]) -> list[Any]:
        """All records of one kind, in file order."""
        return [record for record in self.records if isinstance(record, kind)]

    @cached_property
    def operations(self) -> list[Operation]:
        return self.of(Operation)

    @cached_property
    def submissions(self) -> dict[str, list[Operation]]:
        """Each submitted task id with its submissions, in the order they were asked."""
        return by_task(o for o in sorted(self.operations, key=lambda o: o.asked_ns)
                        if o.name == "submit")

    @cached_property
    def accepted(self) -> list[str]:
        """Ids of the tasks of which at least one submission was answered with success; not that
        with another task's id, whose key it came with."""
        return [task_id for task_id, asked in self.submissions.items()
                if any(operation.outcome == "ok" and not operation.answer.get("duplicate")
                       for operation in asked)]

    @cached_property
    def looks(self) -> dict[str, list[Operation]]:
        """Each task id with the looks that were answered, in order."""
        return self._answered("look")

    @cached_property
    def watches(self) -> dict[str, list[Operation]]:
        """The same of a target that shows no tasks: until when the witness file was watched."""
        return self._answered("watch")

    def _answered(self, name: str) -> dict[str, list[Operation]]:
        return by_task(o for o in sorted(self.operations, key=lambda o: o.answered_ns)
                        if o.name == name and o.outcome == "ok")

    @cached_property
    def executions(self) -> dict[str, list[Execution]]:
        """Each task id with its executions, ordered by start."""
        return by_task(pair(self.of(Witness)))

    @cached_property
    def lives(self) -> list[Life]:
        """The life of each process of the lab, ordered by start."""
        return _lives(self.of(Process))

    def life_of(self, pid: int, at_ns: int) -> Life | None:
        """The process that had this pid at this instant, if the lab started it."""
        for life in reversed(self.lives):
            if life.pid == pid and life.start_ns <= at_ns:
                return life
        return None

    @cached_property
    def spells(self) -> list[Spell]:
        """Each fault of the run from its begin to its end."""
        return _spells(self.of(Fault))

    @cached_property
    def stalls(self) -> list[Stall]:
        return self.of(Stall)

    @cached_property
    def marks(self) -> list[Mark]:
        return self.of(Mark)

    @cached_property
    def end_ns(self) -> int:
        """The last instant that any record speaks of."""
        return max((_latest(record) for record in self.records), default=self.header.began_ns)


def _latest(record: Record) -> int:
    if isinstance(record, Operation):
        return record.answered_ns
    if isinstance(record, Stall):
        return record.to_ns
    if isinstance(record, Pace):
        return record.last_ns
    return 0 if isinstance(record, Mark) else record.at_ns


def pair(lines: Iterable[Witness]) -> list[Execution]:
    """Join each start line with the end line of the same task, attempt and process.

    An end without a start cannot be paired and becomes an execution that began when it ended,
    so that checkers see it.
    """
    open_: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    found: list[Execution] = []
    for line in sorted(lines, key=lambda w: (w.at_ns, w.event == "end")):
        key = (line.task_id, line.attempt, line.pid)
        if line.event == "end" and open_[key]:
            place = open_[key].pop(0)
            found[place] = replace(found[place], end_ns=line.at_ns, outcome=line.outcome)
            continue
        if line.event == "start":
            open_[key].append(len(found))
        ended = line.event == "end"
        found.append(Execution(
            task_id=line.task_id, attempt=line.attempt, worker_id=line.worker_id, pid=line.pid,
            label=line.label, start_ns=line.at_ns, end_ns=line.at_ns if ended else None,
            outcome=line.outcome if ended else None))
    return sorted(found, key=lambda e: e.start_ns)


def _lives(records: Iterable[Process]) -> list[Life]:
    lives: list[Life] = []
    for record in sorted(records, key=lambda p: (p.at_ns, p.event == "exit")):
        if record.event == "start":
            lives.append(Life(record.name, record.pid, record.role, record.at_ns,
                              None, None, None, "", record.concurrency))
            continue
        for place, life in enumerate(lives):
            if life.name == record.name and life.pid == record.pid and life.exit_ns is None:
                lives[place] = replace(life, exit_ns=record.at_ns, exit_code=record.exit_code,
                                       signal=record.signal, asked=record.asked)
                break
    return lives


def _spells(records: Sequence[Fault]) -> list[Spell]:
    ends = {(fault.fault, fault.number): fault.at_ns for fault in records if fault.phase == "end"}
    return [Spell(fault.fault, fault.effect, frozenset(fault.pids), fault.at_ns,
                  ends.get((fault.fault, fault.number)), fault.detail)
            for fault in records if fault.phase == "begin"]


def write(path: Path, header: Header, records: Iterable[Record]) -> None:
    """Write a history with its footer; the file appears whole or not at all."""
    digest = hashlib.sha256()
    count = 0
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        for record in (header, *records):
            line = _encoder.encode(record) + b"\n"
            digest.update(line)
            file.write(line)
            count += 1
        file.write(_encoder.encode(Footer(lines=count, sha256=digest.hexdigest())) + b"\n")
    partial.rename(path)


def read(path: Path) -> History:
    """Read a history back. Raises `HistoryError` that says what is wrong and at which line."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error.strerror}.") from error
    if not lines:
        raise HistoryError(f"{path} is empty.")
    _refuse_newer(path, lines[0])
    parsed = [_parse(path, number, line) for number, line in enumerate(lines, start=1)]
    header, footer = parsed[0], parsed[-1]
    if not isinstance(header, Header):
        raise HistoryError(f"{path} does not begin with a header line.")
    if not isinstance(footer, Footer) or not lines[-1].endswith(b"\n"):
        raise HistoryError(f"{path} is cut short: it has {len(lines)} lines and no footer. "
                           "Judge the file that the run wrote, or run again.")
    if footer.lines != len(lines) - 1:
        raise HistoryError(f"{path} has {len(lines) - 1} lines above its footer, "
                           f"which speaks of {footer.lines}.")
    if footer.sha256 != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
        raise HistoryError(f"{path} was altered after it was written: its digest does not match.")
    body: list[Record] = []
    for number, line in enumerate(parsed[1:-1], start=2):
        if isinstance(line, Header | Footer):
            raise HistoryError(f"{path}, line {number}: a second {type(line).__name__.lower()}.")
        body.append(line)
    return History(header, tuple(body))


def _refuse_newer(path: Path, line: bytes) -> None:
    try:
        first = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise HistoryError(f"{path} is not a history: line 1 is not JSON ({error}).") from error
    version = first.get("format") if isinstance(first, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise HistoryError(f"{path} has format {version}; this program knows up to {FORMAT}. "
                           "Install a newer dtq-contract.")


def _parse(path: Path, number: int, line: bytes) -> _Line:
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise HistoryError(f"{path}, line {number}: {error}.") from error

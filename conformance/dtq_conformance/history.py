"""The record of one run: JSON lines with a header and a footer, saved before it is judged.

Comes in: operations, witness lines, process starts and exits, faults, marks, the pacemaker.
Goes out: a file that anyone can judge again, and `History`, the same as Python values.
All times are CLOCK_MONOTONIC nanoseconds of one machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from dtq_conformance.exchange import Exchange, Heard, LogSearch, Subscription
from dtq_conformance.key_table import KeysAtRest
from dtq_conformance.operation import Operation, by_task
from dtq_conformance.pairing import Execution, Life, Spell, lives_of, pair, spells_of
from dtq_conformance.record import (
    Effect,
    Fault,
    Footer,
    Header,
    Mark,
    Pace,
    Process,
    Stall,
    Timing,
    Witness,
)
from dtq_conformance.snapshot import Snapshot

__all__ = [
    "FORMAT", "Effect", "Execution", "Fault", "Footer", "Header", "History", "HistoryError", "Life",
    "Mark", "Pace", "Process", "Record", "Spell", "Stall", "Timing", "Witness", "pair", "read",
    "write"]
"""What makes up a history; `record` and `pairing` define the smaller parts."""

FORMAT = 1


class HistoryError(Exception):
    """A history that cannot be judged: cut short, altered, newer than this program, not one."""


Record = (Operation | Witness | Process | Fault | Mark | Stall | Pace | KeysAtRest | Snapshot
          | Exchange | Heard | Subscription | LogSearch)
_Line = Header | Record | Footer

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Line)


@dataclass(frozen=True)
class History:
    """A whole run, as read from its file. Derived views are computed once, when asked for.

    `whole` is set where records were left out (`losses`): the run with all of them.
    """

    header: Header
    records: tuple[Record, ...]
    whole: History | None = None

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
        return lives_of(self.of(Process))

    def life_of(self, pid: int, at_ns: int) -> Life | None:
        """The process that had this pid at this instant, if the lab started it."""
        for life in reversed(self.lives):
            if life.pid == pid and life.start_ns <= at_ns:
                return life
        return None

    @cached_property
    def spells(self) -> list[Spell]:
        """Each fault of the run from its begin to its end."""
        return spells_of(self.of(Fault))

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
    if isinstance(record, Operation | Exchange):
        return record.answered_ns
    if isinstance(record, Stall | Subscription):
        return record.to_ns
    if isinstance(record, Pace):
        return record.last_ns
    return 0 if isinstance(record, Mark) else record.at_ns


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

"""What the harness tells Locust's process about one run, and the files that come back.

The harness writes an `Assignment` into the folder that `FOLDER_VARIABLE` names; Locust's process
takes it up when its test starts. Back come the operations, which are complete once their file has
its final name, and what Locust's table says at the end.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from dtq_conformance.history import Timing
from dtq_conformance.operation import Operation
from dtq_conformance.target import Site

FOLDER_VARIABLE = "DTQ_LOAD_FOLDER"
"""The environment variable with the folder in which the two processes meet."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """One run: which workload, how many tasks (None: no limit), where, and into which folder."""

    workload: str
    tasks: int | None
    seed: int
    target: str
    broker_url: str
    prefix: str
    witness: str
    timing: Timing
    folder: str

    @property
    def site(self) -> Site:
        """Where the target runs."""
        return Site(self.broker_url, self.prefix, Path(self.witness), self.timing)

    @property
    def operations(self) -> Path:
        """Every submission; this file exists once Locust's test has ended."""
        return Path(self.folder) / "operations.jsonl"

    @property
    def under_way(self) -> Path:
        """The same file before it is complete; it exists once Locust's test has started."""
        return self.operations.with_suffix(".partial")

    @property
    def was_taken_up(self) -> bool:
        """Whether Locust's test has started, whatever became of it."""
        return self.under_way.exists() or self.operations.exists()

    @property
    def table(self) -> Path:
        """The rows of Locust's table at the end."""
        return Path(self.folder) / "table.json"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of Locust's table; times in milliseconds."""

    name: str
    count: int
    failures: int
    per_s: float
    median_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class Meeting:
    """The folder in which the harness and Locust's process meet, from either side."""

    def __init__(self, folder: Path) -> None:
        self._assignment = folder / "assignment.json"
        self._wanted = folder / "wanted"

    def want(self) -> None:
        """Locust's side: a test was started and needs an assignment."""
        self._wanted.touch()

    def withdraw(self) -> None:
        """Locust's side: the test was stopped before it had an assignment."""
        self._wanted.unlink(missing_ok=True)

    @property
    def is_wanted(self) -> bool:
        """Whether a started test waits for its assignment."""
        return self._wanted.exists()

    def hand_over(self, assignment: Assignment) -> None:
        """The harness's side: everything is ready for this run."""
        partial = self._assignment.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(assignment))
        partial.rename(self._assignment)

    def take_up(self) -> Assignment | None:
        """Locust's side: the assignment, once; None while there is none."""
        try:
            assignment = msgspec.json.decode(self._assignment.read_bytes(), type=Assignment)
        except FileNotFoundError:
            return None
        assignment.under_way.touch()
        self._assignment.unlink(missing_ok=True)
        self._wanted.unlink(missing_ok=True)
        return assignment

    def take_back(self) -> None:
        """The harness's side: the run is off."""
        self._assignment.unlink(missing_ok=True)


def meeting_here() -> Meeting:
    """The meeting that this process was started for."""
    return Meeting(Path(os.environ[FOLDER_VARIABLE]))


def read_operations(path: Path) -> list[Operation]:
    """The operations of a complete file."""
    decoder = msgspec.json.Decoder(Operation)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def read_table(path: Path) -> list[Row]:
    """The rows of Locust's table."""
    return msgspec.json.decode(path.read_bytes(), type=list[Row])

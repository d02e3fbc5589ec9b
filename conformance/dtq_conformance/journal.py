"""The journal of a selftest: what was asked for, and how each trial ended, written as they end.

Comes in: `Ended`, one after the other. Goes out: `selftest.jsonl` in the folder of the run, from
which a selftest that was interrupted goes on. Verdicts are read from the runs' own folders.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from dtq_conformance.exits import InputError
from dtq_conformance.scheduler import Ended
from dtq_conformance.verdict import RunVerdict

NAME = "selftest.jsonl"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: what a selftest was asked for."""

    engines: list[str]
    whole: bool
    sample: int
    seed: int
    broker: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """How one trial ended. `folder` is beside the journal."""

    name: str
    exit_code: int
    folder: str
    took_s: float


class Journal:
    """Appends to the journal in this folder. A trial without a verdict is not noted: it is to be
    run again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / NAME

    def begin(self, asked: Asked) -> None:
        """Make the folder and write the first line."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file.write_bytes(msgspec.json.encode(asked) + b"\n")
        except OSError as error:
            raise InputError(f"The selftest cannot be written to {self.folder}: {error.strerror}. "
                             "Name a folder with --out.") from error

    def note(self, ended: Ended) -> None:
        """Note how a trial ended."""
        if ended.verdict is None or ended.folder is None:
            return
        line = Line(name=ended.name, exit_code=ended.exit_code, took_s=ended.took_s,
                    folder=str(ended.folder.resolve().relative_to(self.folder.resolve())))
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def read(self) -> tuple[Asked, list[Ended]]:
        """What was asked for, and all that has ended. Raises `InputError`."""
        try:
            first, *lines = self._file.read_bytes().splitlines(keepends=True)
            asked = msgspec.json.decode(first, type=Asked)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise InputError(f"{self._file} is no journal of a selftest ({error}). Name the folder "
                             "that an interrupted one has told.") from error
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()  # it was being written
        ended = []
        for line in lines:
            with contextlib.suppress(OSError, msgspec.MsgspecError):  # then it is run again
                ended.append(self._ended(msgspec.json.decode(line, type=Line)))
        return asked, ended

    def _ended(self, line: Line) -> Ended:
        folder = self.folder / line.folder
        verdict = msgspec.json.decode((folder / "verdict.json").read_bytes(), type=RunVerdict)
        return Ended(line.name, line.exit_code, folder, verdict, took_s=line.took_s)

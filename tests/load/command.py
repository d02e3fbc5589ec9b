"""The command `dtq-load` as a user runs it, and a page of it that is waited for."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtq_conformance.waiting import WaitedTooLong, wait_for

LIMIT_S = 60.0

COMMAND = (sys.executable, "-m", "dtq_load")


def dtq_load(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True,
                          timeout=2 * LIMIT_S, check=False)


def only_run(output: str) -> dict[str, Any]:
    """The one run of which `--json` tells."""
    (run,) = json.loads(output)["runs"]
    return dict(run)


class Served:
    """`dtq-load serve`, running."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output
        self.address = self.await_text(r"(http://127\.0\.0\.1:\d+)")

    @property
    def text(self) -> str:
        """What it has printed so far."""
        return self._output.read_text()

    def await_text(self, pattern: str) -> str:
        """Wait until it has printed this; returns the first group."""
        def found() -> re.Match[str] | None:
            assert self.process.poll() is None, self.text
            return re.search(pattern, self.text)

        try:
            return wait_for(found, reason=pattern, limit_s=LIMIT_S, every_s=0.05).group(1)
        except WaitedTooLong as late:
            raise AssertionError(f"{late}; it has printed: {self.text}") from late

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LIMIT_S)


@contextlib.contextmanager
def serve(folder: Path, *arguments: str) -> Iterator[Served]:
    """Run `dtq-load serve`, its runs in `folder`, and end it."""
    output = folder / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen([*COMMAND, "serve", "--out", str(folder / "runs"), *arguments],
                                   stdout=file, stderr=file, start_new_session=True)
    try:
        yield Served(process, output)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_S)

"""A scheduler of trials as a user runs it, with everything that it starts under our eyes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
from dtq_conformance.verdict import RunVerdict, Status
from dtq_conformance.waiting import wait_for

LIMIT_S = 60.0

Expects = Literal["holds", "violated"]


def run(module: str, *arguments: str, environment: dict[str, str] | None = None,
        ) -> subprocess.CompletedProcess[str]:
    """Run a command of the house to its end."""
    return subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True,
                          text=True, timeout=2 * LIMIT_S, check=False,
                          env=dict(os.environ) | (environment or {}))


def runs(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """What `--json` tells of each trial, by the trial's name."""
    assert done.stdout, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["runs"]}


WORKERS = frozenset({"worker", "dtq_reference.heartbeat_process"})
"""Words in command lines by which a worker is seen; one that was forked by its heartbeat."""


@dataclass
class Scheduler:
    """`python -m MODULE run …`, running; its labs' folders are in `folder`."""

    process: subprocess.Popen[str]
    folder: Path
    below: list[psutil.Process] = field(default_factory=list)

    def await_workers(self) -> None:
        """Wait until one of its trials has a worker, and take note of all processes below it."""
        def appears() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            self.below = psutil.Process(self.process.pid).children(recursive=True)
            return any(WORKERS & set(_words(each)) for each in self.below)

        wait_for(appears, reason="a worker", limit_s=LIMIT_S, every_s=0.02)
        assert list(self.folder.glob("dtq-lab-*"))

    def leaves_nothing(self) -> bool:
        """Whether no process that was below it lives, and no lab's folder is there."""
        return not any(map(_lives, self.below)) and not list(self.folder.glob("dtq-lab-*"))

    def await_nothing_left(self) -> None:
        wait_for(self.leaves_nothing, reason="its processes and folders to be gone",
                 limit_s=LIMIT_S, every_s=0.02)


def begin(folder: Path, module: str, *arguments: str,
          ignoring: str = "") -> Scheduler:
    """Start a scheduler, in a shell that ignores the signal `ignoring` if one is given."""
    folder.mkdir()
    command: Sequence[str] = [sys.executable, "-m", module, "run", *arguments, "--out",
                              str(folder / "runs")]
    if ignoring:
        command = ["sh", "-c", f"trap '' {ignoring}; exec \"$@\"", "sh", *command]
    return Scheduler(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env=dict(os.environ) | {"TMPDIR": str(folder)}),
                     folder)


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def verdict(status: Status, expects: Expects = "holds") -> RunVerdict:
    return RunVerdict(run_id="r", room="chaos", trial="story", target="reference", broker="b",
                      seed=7, status=status, sentence="This is what was found.", rows=(),
                      convicted_by=("nothing_lost",) if status == "violated" else (),
                      marks_missing=(), repeat="dtq-chaos run story --seed 7", expects=expects)

"""A target of a few lines for the tests of what works targets: tasks in a dict, workers that wait.

A worker of it is a real process; on request it writes the start of one task to the witness file,
or refuses to end when asked to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from dtq_conformance.bench import Bench
from dtq_conformance.lab import Lab
from dtq_conformance.target import Command, Site, Submission, TaskView

from tests.conformance import histories

TIMING = msgspec.structs.replace(histories.TIMING, drain_ms=100, recovery_ms=300)

WORKER = """
import json, os, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it waits for sigwait, which ends then
line = {"at_ns": time.monotonic_ns(), "event": "start", "task_id": os.environ["TASK"],
        "attempt": 1, "worker_id": os.environ["WORKER"], "pid": os.getpid(), "label": "held"}
with open(os.environ["WITNESS"], "a") as witness:
    witness.write(json.dumps(line) + "\\n")
while True:
    signal.sigwait({signal.SIGTERM})
    if "stubborn" not in sys.argv:
        sys.exit(0)
"""


@dataclass
class Miniature:
    """The target and its kind in one. `trouble` is raised by every call that works a task."""

    name: str = "miniature"
    claims: frozenset[str] = frozenset({"delivery", "redis-schema"})
    recovery_ms: int = 300
    stubborn: bool = False
    trouble: Exception | None = None
    tasks: dict[str, TaskView] = field(default_factory=dict)
    site: Site | None = None

    def open(self, site: Site) -> Miniature:
        self.site = site
        return self

    def worker(self, worker_id: str, concurrency: int, *, broker_url: str | None = None) -> Command:
        del concurrency, broker_url
        assert self.site is not None
        words = ["stubborn"] if self.stubborn else []
        return Command([sys.executable, "-S", "-c", WORKER, *words],
                       {"WITNESS": str(self.site.witness), "WORKER": worker_id, "TASK": "held"})

    def submit(self, submission: Submission) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.tasks[submission.task_id] = view(submission.task_id)

    def look(self, task_id: str) -> TaskView | None:
        if self.trouble is not None:
            raise self.trouble
        return self.tasks.get(task_id)

    def close(self) -> None:
        """There is nothing to let go of."""


def view(task_id: str, status: str = "queued", **fields: int) -> TaskView:
    given = {"attempt": 1, "max_attempts": 5, "priority": 5} | fields
    return TaskView(task_id=task_id, status=status, task_type="probe_task", **given)


@contextmanager
def bench_of(target: Miniature, lab: Lab, *, seed: int = 1) -> Iterator[Bench]:
    """A bench that works this target. At its end the workers that are left are killed."""
    bench = Bench(lab, target, TIMING, seed)
    try:
        yield bench
    finally:
        for worker in bench.living():
            worker.process.kill()
        bench.close()


@contextmanager
def lab_in(folder: Path) -> Iterator[Lab]:
    with Lab(folder) as lab:
        yield lab

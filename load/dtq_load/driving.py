"""A load run as a trial: the steps between the lab's start and the last looks.

Comes in: a workload and how much of it. Goes out: a `Trial` for `trial.conduct`, which saves and
judges as it does for every other room. Locust's process is started or asked by `Open`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from dtq_conformance.bench import Bench
from dtq_conformance.lab import LabProcess
from dtq_conformance.target import Submission
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import wait_for

from dtq_load.assignment import Assignment, read_operations
from dtq_load.locust_process import require_alive
from dtq_load.workload import Workload

TABLE = "locust.json"
"""The file in the run's folder with the rows of Locust's table."""
LOAD_LIMIT_S = 3600.0
"""The longest load; its tasks or its seconds end it sooner."""
LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Plan:
    """What is to be done: the workload, against which target, and how much of it."""

    workload: Workload
    target: str
    seed: int
    tasks: int | None
    with_faults: bool


Open = Callable[[Bench, Assignment], LabProcess]
"""Hand the assignment to Locust's process; return that process once it has taken it up."""


class RunningLoad:
    """The load of one run, as the harness sees it from outside Locust's process."""

    def __init__(self, assignment: Assignment, locust: LabProcess) -> None:
        self.tasks = assignment.tasks
        self._assignment = assignment
        self._locust = locust

    def is_over(self) -> bool:
        """Whether Locust has ended its test. Raises `LabError` if Locust itself has ended."""
        if self._assignment.operations.exists():
            return True
        if not self._locust.alive and not self._assignment.operations.exists():
            require_alive(self._locust)
        return False


def trial_of(plan: Plan, open_: Open) -> Trial:
    """The trial of this plan."""
    workload = plan.workload

    def drive(bench: Bench) -> None:
        bench.start_workers(workload.workers, workload.concurrency)
        assignment = _assignment(plan, bench)
        load = RunningLoad(assignment, open_(bench, assignment))
        if plan.with_faults and workload.fire is not None:
            workload.fire(bench, load)
        wait_for(load.is_over, reason="Locust to end its test", limit_s=LOAD_LIMIT_S,
                 every_s=LOOK_EVERY_S)
        _collect(bench, assignment)
        _drain(bench)

    return Trial(room="load", name=workload.name, story=workload.story,
                 clauses=workload.clauses, drive=drive, marks=workload.marks)


def _assignment(plan: Plan, bench: Bench) -> Assignment:
    lab = bench.lab
    folder = lab.folder / "load"
    folder.mkdir()
    return Assignment(workload=plan.workload.name, tasks=plan.tasks, seed=plan.seed,
                      target=plan.target, broker_url=lab.broker.url, prefix=lab.broker.prefix,
                      witness=str(lab.witness), timing=bench.timing, folder=str(folder))


def _collect(bench: Bench, assignment: Assignment) -> None:
    """Take what Locust's users did over into the bench, and keep Locust's table."""
    for operation in read_operations(assignment.operations):
        bench.records.append(operation)
        submission = msgspec.convert(operation.request, Submission)
        bench.submissions.setdefault(submission.task_id, submission)
    shutil.copy(assignment.table, run_folder(bench) / TABLE)


def _drain(bench: Bench) -> None:
    """Wait until all is finished: for as long as handlers end, and then for the recovery time."""
    ended = -1
    while not bench.await_all_terminal() and len(bench.witnessed("end")) > ended:
        ended = len(bench.witnessed("end"))


def run_folder(bench: Bench) -> Path:
    """The folder of the run that this bench works for."""
    return bench.lab.logs.parent

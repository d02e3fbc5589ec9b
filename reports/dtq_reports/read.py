"""From a run's folder to `Run`: what every table, plot and sentence of a report is made from.

Comes in: history.jsonl, verdict.json and, where there is one, schedule.json. Goes out: `Run`, with
the table of executions, the fate of each task and the deaths of workers. Nothing is judged here.
All times that leave this module are seconds since the run began.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from dtq_conformance import evidence
from dtq_conformance import history as histories
from dtq_conformance.exits import InputError
from dtq_conformance.history import Execution, History, HistoryError, Life
from dtq_conformance.justification import Justification, justifications
from dtq_conformance.verdict import RunVerdict

HISTORY, VERDICT, SCHEDULE = "history.jsonl", "verdict.json", "schedule.json"

COLUMNS = ("task_id", "number", "attempt", "worker", "pid", "start_s", "end_s", "outcome",
           "priority", "standing", "cause", "because")

LOSS = "DLV-01"
"""The clause that promises that nothing accepted is lost."""


class ReportError(InputError):
    """A folder of which no report can be made; the message says why and what to do."""


@dataclass(frozen=True)
class Fate:
    """What became of one submitted task, as the last look at it showed.

    `status` is None when no look at it was answered, and "not there" when the target did not know
    it. `lost` is what the judge proved, never a guess of this room; a task that is neither
    finished nor lost is one of which nobody can say.
    """

    task_id: str
    priority: int
    accepted: bool
    submitted_s: float
    looked_s: float | None
    status: str | None
    executions: int
    finished: bool
    lost: bool


@dataclass(frozen=True)
class Death:
    """A worker process that was killed with SIGKILL, by a fault or by its own task."""

    worker: str
    pid: int
    at_s: float


@dataclass(frozen=True)
class Run:
    """One run as its files tell it. Derived views are computed once, when asked for."""

    folder: Path
    history: History
    verdict: RunVerdict
    schedule: str | None

    def seconds(self, at_ns: int) -> float:
        """Seconds since the run began."""
        return (at_ns - self.history.header.began_ns) / 1e9

    @property
    def end_s(self) -> float:
        return self.seconds(self.history.end_ns)

    @cached_property
    def workers(self) -> list[Life]:
        """The worker processes, ordered by start."""
        return [life for life in self.history.lives if life.role == "worker"]

    @cached_property
    def deaths(self) -> list[Death]:
        """The workers that were killed before the last question was put to the target.

        What the lab ends when a run is over is tidying up, not a fault.
        """
        over_ns = max((o.asked_ns for o in self.history.operations), default=self.history.end_ns)
        return [Death(life.name, life.pid, self.seconds(self._killed_ns(life, life.exit_ns)))
                for life in self.workers
                if life.exit_ns is not None and life.signal == 9 and life.exit_ns <= over_ns]

    def _killed_ns(self, life: Life, exit_ns: int) -> int:
        """When the kill was sent, if a fault says so: the lab may hear of the exit later."""
        sent = [spell.from_ns for spell in self.history.spells
                if spell.effect == "killed" and life.pid in spell.pids
                and life.start_ns <= spell.from_ns <= exit_ns]
        return min([exit_ns, *sent])

    @cached_property
    def fates(self) -> dict[str, Fate]:
        """Each submitted task with what became of it, in the order of submission."""
        return {task_id: self._fate(task_id) for task_id in self.history.submissions}

    @cached_property
    def tasks(self) -> list[Fate]:
        """The tasks that were accepted or executed: a refused submission is no task."""
        return [fate for fate in self.fates.values() if fate.accepted or fate.executions]

    def _fate(self, task_id: str) -> Fate:
        first = self.history.submissions[task_id][0]
        last = evidence.last_look(self.history, task_id)
        lost = task_id in self._lost
        return Fate(
            task_id=task_id, priority=int(first.request.get("priority", 5)),
            accepted=task_id in self._accepted, submitted_s=self.seconds(first.asked_ns),
            looked_s=None if last is None else self.seconds(last.answered_ns),
            status=None if last is None else str(last.answer.get("status", "not there")),
            executions=len(self.history.executions.get(task_id, ())),
            finished=evidence.terminal(last) and not lost, lost=lost)

    @cached_property
    def _lost(self) -> frozenset[str]:
        """The tasks that the judge found lost."""
        return frozenset(finding.task_id for row in self.verdict.rows if row.clause == LOSS
                         for finding in row.findings
                         if finding.status == "violated" and finding.task_id is not None)

    @cached_property
    def again(self) -> dict[tuple[str, int], Justification]:
        """What explains each further execution, by task and start in nanoseconds."""
        return {(found.task_id, found.later.start_ns): found
                for found in justifications(self.history)}

    @cached_property
    def _accepted(self) -> frozenset[str]:
        return frozenset(self.history.accepted)

    @cached_property
    def deleted(self) -> list[str]:
        """What the harness itself deleted from the server, to see whether the judge notices."""
        return [str(spell.detail.get("task_id", "")) for spell in self.history.spells
                if spell.effect == "deleted"]

    @property
    def is_control(self) -> bool:
        """Whether the harness did the damage itself: such a run has to be violated."""
        return bool(self.deleted)

    @cached_property
    def executions(self) -> pd.DataFrame:
        """One row for each execution, ordered by start; the columns are `COLUMNS`.

        `number` counts the executions of one task from 1; `end_s` is the time of the end line,
        of the death of its process, or of the end of the run; `outcome` is ok, failed or cancelled
        as the handler said, `died` if its process ended first, `open` if nothing is known.
        `standing`, `cause` and `because` (a sentence) explain an execution after the first.
        """
        rows = [row for task in self.history.executions.values() for row in self._rows(task)]
        table = pd.DataFrame(rows, columns=list(COLUMNS))
        return table.sort_values("start_s", kind="stable", ignore_index=True)

    def _rows(self, executions: list[Execution]) -> Iterator[tuple[Any, ...]]:
        for number, execution in enumerate(executions, start=1):
            life = evidence.life(self.history, execution)
            died = evidence.lost_holder_ns(self.history, execution) is not None
            fate = self.fates.get(execution.task_id)
            why = self.again.get((execution.task_id, execution.start_ns)) if number > 1 else None
            yield (execution.task_id, number, execution.attempt,
                   life.name if life else execution.worker_id, execution.pid,
                   self.seconds(execution.start_ns),
                   self.seconds(evidence.over_ns(self.history, execution)),
                   "died" if died else execution.outcome or "open",
                   fate.priority if fate else 5, why.standing if why else "",
                   why.cause if why else "", why.sentence if why else "")


def rows_of(table: pd.DataFrame) -> Iterator[Any]:
    """The rows of a table of executions, each with the columns as attributes."""
    yield from table.itertuples(index=False)


def read_run(folder: Path) -> Run:
    """Read one run. Raises `ReportError` if its files are damaged or do not belong together."""
    path = folder / VERDICT
    if not path.is_file():
        raise ReportError(f"{folder} has a history and no {VERDICT}: it was never judged. "
                          f"Judge it with: dtq-conformance judge {folder / HISTORY}")
    try:
        history = histories.read(folder / HISTORY)
    except HistoryError as error:
        raise ReportError(str(error)) from error
    try:
        verdict = msgspec.json.decode(path.read_bytes(), type=RunVerdict)
    except msgspec.MsgspecError as error:
        raise ReportError(f"{path} is not a verdict: {error}. Judge the run again with: "
                          f"dtq-conformance judge {folder / HISTORY}") from error
    if verdict.run_id != history.header.run_id:
        raise ReportError(f"{path} is the verdict of run {verdict.run_id}, but {HISTORY} beside it "
                          f"is of run {history.header.run_id}. Judge it again with: "
                          f"dtq-conformance judge {folder / HISTORY}")
    schedule = folder / SCHEDULE
    return Run(folder, history, verdict, schedule.read_text() if schedule.is_file() else None)


def read_runs(folder: Path) -> list[Run]:
    """Read the run in this folder, or every run below it, ordered by room and time.

    Raises `ReportError` if there is none.
    """
    if not folder.is_dir():
        raise ReportError(f"There is no folder {folder}. Give a run's folder, one that contains "
                          f"runs, or the word latest.")
    found = sorted(path.parent for path in folder.rglob(HISTORY))
    if not found:
        raise ReportError(f"{folder} contains no run: no {HISTORY} in it or below it.")
    runs = [read_run(place) for place in found]
    return sorted(runs, key=lambda run: (run.history.header.room, run.history.header.began_at))


def without_history(folder: Path) -> list[Path]:
    """The runs in or below a folder that began and left no history: nobody can judge them."""
    begun = {path.parent for name in (SCHEDULE, "logs") for path in folder.rglob(name)}
    return sorted(place for place in begun if not (place / HISTORY).is_file())


def results_folder() -> Path:
    """Where runs are written unless told otherwise: reports/results of the checkout in use."""
    room = Path(__file__).resolve().parents[1]
    inside = (room.parent / "pyproject.toml").is_file()
    return room / "results" if inside else Path.cwd() / "reports" / "results"


def latest(results: Path) -> Path:
    """The run or batch under `results` that was written last. Raises `ReportError`."""
    newest = {child: max(path.stat().st_mtime for path in child.rglob(HISTORY))
              for child in (results.iterdir() if results.is_dir() else ())
              if child.is_dir() and any(child.rglob(HISTORY))}
    if not newest:
        raise ReportError(f"There is no run under {results} yet. Make one with: "
                          "dtq-conformance run --target reference")
    return max(newest, key=lambda child: newest[child])

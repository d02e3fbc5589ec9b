"""The numbers and the one answer of a report, counted from histories, worded once.

Comes in: runs as `read` gives them. Goes out: the tally, the answer to "was anything lost?", the
clauses merged over runs, and the same as a table for a terminal or as Markdown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtq_conformance.losses import apart
from dtq_conformance.verdict import SEVERITY, Status, Verdict, worst
from rich.console import Console
from rich.table import Table

from dtq_reports.read import LOSS, Run, read_runs, without_history
from dtq_reports.words import count, listed, number, was

WORD: dict[Status, str] = {"holds": "held", "violated": "violated", "unknown": "unknown",
                           "not claimed": "not claimed", "warning": "warning"}
SYMBOL: dict[Status, str] = {"holds": "✓", "violated": "✗", "unknown": "?", "not claimed": "–",
                             "warning": "!"}
MEANING: dict[Status, str] = {
    "holds": "looked for and found true",
    "violated": "proven false, with evidence",
    "unknown": "the evidence does not decide it",
    "not claimed": "the target does not promise it, so it was not judged",
    "warning": "proven false, of what the contract asks for with SHOULD: it decides nothing",
}
STYLE: dict[Status, str] = {"holds": "green", "violated": "bold red", "unknown": "yellow",
                            "not claimed": "dim", "warning": "magenta"}


@dataclass(frozen=True)
class Tally:
    """What happened to the tasks of some runs. `statuses` counts the finished ones."""

    accepted: int
    finished: int
    lost: tuple[str, ...]
    undecided: int
    executions: int
    killed: int
    statuses: Counter[str]


@dataclass(frozen=True)
class Remark:
    """Something else that a reader of the answer has to know at once."""

    status: Status
    sentence: str


@dataclass(frozen=True)
class Answer:
    """The answer to "was anything lost?": a word, its colour, and what it was counted from."""

    word: str
    status: Status
    sentence: str
    besides: tuple[Remark, ...]


@dataclass(frozen=True)
class Clause:
    """One clause over all runs that tested it. `runs` maps each status to the trials it had."""

    clause: str
    status: Status
    sentence: str
    runs: dict[Status, tuple[str, ...]]


def tally(runs: Sequence[Run]) -> Tally:
    """Count over these runs. A task is lost if the judge proved it; of an accepted task that is
    neither finished nor lost nobody can say. As in the judgement, what a power failure may have
    undone is left out, since the target promises nothing about its last second."""
    fates = [run.fates[task_id] for run in runs for task_id in apart(run.history).submissions]
    accepted = [fate for fate in fates if fate.accepted]
    return Tally(
        accepted=len(accepted),
        finished=sum(fate.finished for fate in accepted),
        lost=tuple(fate.task_id for fate in fates if fate.lost),
        undecided=sum(not fate.finished and not fate.lost for fate in accepted),
        executions=sum(len(run.executions) for run in runs),
        killed=sum(len(run.deaths) for run in runs),
        statuses=Counter(str(fate.status) for fate in accepted if fate.finished))


def status_of(run: Run) -> Status:
    """What a run contributes to a batch: a control run has done well if it was convicted."""
    if not run.is_control:
        return run.verdict.status
    if run.verdict.status == "violated" and "nothing_lost" in run.verdict.convicted_by:
        return "holds"
    return "unknown" if run.verdict.status == "unknown" else "violated"


def status_of_all(runs: Sequence[Run]) -> Status:
    """The worst of what these runs contribute; a control run that stands alone is itself."""
    return runs[0].verdict.status if len(runs) == 1 else worst([status_of(run) for run in runs])


def answer(runs: Sequence[Run], *, unrecorded: Sequence[Path] = ()) -> Answer:
    """Say whether anything was lost, and what else a reader has to know at once.

    `unrecorded` are the folders of runs that began and left no history.
    """
    judged = [run for run in runs if not run.is_control] or list(runs)
    total = tally(judged)
    losses = [row.status for run in judged for row in run.verdict.rows if row.clause == LOSS]
    status: Status = "holds"
    if total.lost or "violated" in losses:
        status = "violated"
    elif total.undecided or "unknown" in losses or not total.accepted:
        status = "unknown"
    word = {"holds": "No.", "violated": "Yes.", "unknown": "Not known."}[status]
    besides = tuple(remark for remark in (
        _other_violations(judged), _unknowns(judged), _unrecorded(unrecorded), _undone(judged),
        _controls(runs, judged))
        if remark is not None)
    return Answer(word, status, _counted(total), besides)


def _counted(total: Tally) -> str:
    kinds = [f"{number(n)} {status.replace('_', '-')}"
             for status, n in total.statuses.most_common()]
    finished = f"{number(total.finished)} finished"
    if len(kinds) > 1:
        finished += f" ({listed(kinds)})"
    parts = [f"{count(total.accepted, 'task')} accepted", finished,
             f"{number(len(total.lost))} lost"]
    if total.undecided:
        parts.append(f"{number(total.undecided)} of which nobody can say")
    killed = f"while {count(total.killed, 'worker')} {was(total.killed)} killed" \
        if total.killed else "while no worker was killed"
    return f"{', '.join(parts)}, {killed}."


def _other_violations(runs: Sequence[Run]) -> Remark | None:
    bad = sorted({row.clause for run in runs for row in run.verdict.rows
                  if row.status == "violated" and row.clause != LOSS})
    if not bad:
        return None
    return Remark("violated", f"{count(len(bad), 'other clause')} {was(len(bad))} violated: "
                              f"{listed(bad)}.")


def _unknowns(runs: Sequence[Run]) -> Remark | None:
    open_ = [run.verdict.trial for run in runs if run.verdict.status == "unknown"]
    if not open_:
        return None
    return Remark("unknown", f"{len(open_)} of {count(len(runs), 'run')} {was(len(open_))} not "
                             f"decided (unknown): {listed(open_)}.")


def _unrecorded(folders: Sequence[Path]) -> Remark | None:
    if not folders:
        return None
    return Remark("unknown", f"{count(len(folders), 'run')} left no history, and nothing can be "
                             f"said of {'it' if len(folders) == 1 else 'them'}: "
                             f"{listed([folder.name for folder in folders])}.")


def _undone(runs: Sequence[Run]) -> Remark | None:
    """Tell of the accepted tasks that `tally` leaves out."""
    doubtful = sum(fate.accepted for run in runs for task_id, fate in run.fates.items()
                   if task_id not in apart(run.history).submissions)
    if not doubtful:
        return None
    return Remark("not claimed", f"{count(doubtful, 'accepted task')} {was(doubtful)} not counted: "
                                 "a power failure may have undone what was the last second's.")


def _controls(runs: Sequence[Run], judged: Sequence[Run]) -> Remark | None:
    """Tell of the runs in which the harness did the damage, to see whether the judge notices."""
    controls = [run for run in runs if run.is_control]
    if not controls:
        return None
    caught = all(status_of(run) == "holds" for run in controls)
    deleted = count(sum(len(run.deleted) for run in controls), "accepted task")
    alone = controls == list(judged)
    where = "this run" if alone else count(len(controls), "control run")
    noticed = "and the judge noticed, as it must" if caught else "and the judge did NOT notice"
    apart = "" if alone else f" {'It is' if len(controls) == 1 else 'They are'} not counted above."
    return Remark("holds" if caught else "violated",
                  f"In {where} the harness itself deleted {deleted}, {noticed}.{apart}")


def merged(runs: Sequence[Run]) -> list[Clause]:
    """Each clause with its worst status over the runs, worst first; control runs are left out."""
    judged = [run for run in runs if not run.is_control] or list(runs)
    found: dict[str, list[tuple[str, Verdict]]] = {}
    for run in judged:
        for row in run.verdict.rows:
            found.setdefault(row.clause, []).append((run.verdict.trial, row))
    rows = [_merge(clause, rows, named=len(judged) > 1) for clause, rows in found.items()]
    return sorted(rows, key=lambda row: (-SEVERITY[row.status], row.clause))


def _merge(clause: str, rows: list[tuple[str, Verdict]], *, named: bool) -> Clause:
    status = worst([row.status for _, row in rows])
    at_fault = [(trial, row) for trial, row in rows if row.status == status]
    trial, row = max(at_fault, key=lambda pair: pair[1].judged)
    sentence = f"{trial}: {row.sentence}" if named else row.sentence
    return Clause(clause, status, sentence,
                  {kind: tuple(trial for trial, row in rows if row.status == kind)
                   for kind in SYMBOL if any(row.status == kind for _, row in rows)})


def print_summary(folder: Path, *, console: Console | None = None) -> None:
    """Print the answer and a table of the runs in `folder` to the terminal."""
    out = console or Console(highlight=False)
    if not out.is_terminal:
        out = Console(file=out.file, highlight=False, width=max(out.width, LOG_COLUMNS))
    runs = read_runs(folder)
    said = answer(runs, unrecorded=without_history(folder))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in COUNTED else "left",
                         no_wrap=heading in (*COUNTED, "status", "room"), overflow="fold")
    for run in runs:
        cells = _cells(run)
        style = STYLE[status_of(run)]
        table.add_row(f"[{style}]{cells[0]}[/]", *cells[1:])
    out.print(table)
    out.print(f"[{STYLE[said.status]}]Was anything lost? {said.word}[/] {said.sentence}")
    for remark in said.besides:
        out.print(f"[{STYLE[remark.status]}]{SYMBOL[remark.status]}[/] {remark.sentence}")


def markdown(folder: Path) -> str:
    """The same summary as Markdown, for a page of a CI service or a ticket."""
    runs = read_runs(folder)
    said = answer(runs, unrecorded=without_history(folder))
    lines = [f"**Was anything lost? {said.word}** {said.sentence}", "",
             *[f"{SYMBOL[remark.status]} {remark.sentence}\n" for remark in said.besides],
             f"| {' | '.join(HEADINGS)} |",
             f"|{'|'.join('---:' if h in COUNTED else '---' for h in HEADINGS)}|",
             *[f"| {' | '.join(_cells(run))} |" for run in runs]]
    return "\n".join(lines) + "\n"


LOG_COLUMNS = 120
"""Where there is no terminal, as in a CI's log, this many columns are used."""

HEADINGS = ("status", "trial", "room", "target", "tasks", "finished", "executed", "killed")
COUNTED = HEADINGS[4:]


def _cells(run: Run) -> list[str]:
    total, status = tally([run]), run.verdict.status
    remark = " (as it must)" if run.is_control and status_of(run) == "holds" else ""
    return [f"{SYMBOL[status]} {WORD[status]}{remark}", run.verdict.trial, run.verdict.room,
            run.verdict.target, number(total.accepted), number(total.finished),
            number(total.executions), number(total.killed)]


def as_data(run: Run) -> dict[str, Any]:
    """One run for machines."""
    total, verdict = tally([run]), run.verdict
    return {"run_id": verdict.run_id, "room": verdict.room, "trial": verdict.trial,
            "target": verdict.target, "status": verdict.status, "folder": str(run.folder),
            "accepted": total.accepted, "finished": total.finished, "lost": list(total.lost),
            "executions": total.executions, "killed": total.killed}

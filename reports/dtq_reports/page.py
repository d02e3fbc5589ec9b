"""From runs to one HTML page that needs nothing but a browser, and the PNG files beside it.

Comes in: runs as `read` gives them, in the folder that they were found in. Goes out: `Written`.
Pictures are data: URIs and the style is inline, so the page opens from a disk or an attachment.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dtq_conformance import evidence
from dtq_conformance.clauses import Clause, load_clauses
from dtq_conformance.verdict import SEVERITY, Status, Verdict
from jinja2 import Environment, PackageLoader, StrictUndefined

from dtq_reports import story, summary
from dtq_reports.plot import Picture, to_png
from dtq_reports.plots import PLOTS, executions_per_task
from dtq_reports.read import Run, rows_of
from dtq_reports.words import count, listed, number, was

PAGE = "report.html"
RUNS_TO_SHARE_OUT = 8
"""From so many runs on, drawing in several processes is worth starting them."""

ROWS_AT_MOST = 60
"""So many further executions are listed; the rest is counted, and is in the history."""


@dataclass(frozen=True)
class Written:
    """What a report consists of on disk, and the status that it shows."""

    page: Path
    pngs: tuple[Path, ...]
    status: Status


def write_report(runs: Sequence[Run], folder: Path, *,
                 unrecorded: Sequence[Path] = ()) -> Written:
    """Draw every plot of every run, and write the page and the PNG files into `folder`.

    Runs stand in the order given, except that what went wrong comes first. `unrecorded` are the
    folders of runs that left no history.
    """
    folder.mkdir(parents=True, exist_ok=True)
    runs = sorted(runs, key=lambda run: -SEVERITY[summary.status_of(run)])
    pngs: list[Path] = []
    sections = []
    for run, anchor, pictures in zip(runs, _anchors(runs), draw_all(runs), strict=True):
        for picture in pictures:
            pngs.append(folder / f"{anchor}-{picture.name}.png")
            pngs[-1].write_bytes(picture.png)
        sections.append(_section(run, anchor, pictures, single=len(runs) == 1))
    page = folder / PAGE
    page.write_text(_render(runs, sections, unrecorded), encoding="utf-8")
    return Written(page, tuple(pngs), summary.status_of_all(runs))


def draw_all(runs: Sequence[Run]) -> list[list[Picture]]:
    """Every plot of every run; many runs are shared out to as many processes as there are cores.

    They are spawned, not forked: whoever calls may have threads.
    """
    if len(runs) < RUNS_TO_SHARE_OUT or cores() == 1:
        return [draw(run) for run in runs]
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        return list(pool.map(draw, runs, chunksize=2))


def cores() -> int:
    """How many processes can draw at the same time."""
    return min(os.cpu_count() or 1, 8)


def draw(run: Run) -> list[Picture]:
    """Every plot that has something to show of this run."""
    drawings = ((name, plot(run)) for name, plot in PLOTS.items())
    return [to_png(name, drawing) for name, drawing in drawings if drawing is not None]


def _anchors(runs: Sequence[Run]) -> list[str]:
    """A name for each run that is fit for a file and a link, and unique on the page."""
    names: list[str] = []
    for run in runs:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", run.verdict.run_id)
        names.append(name if name not in names else f"{name}-{len(names)}")
    return names


def _render(runs: Sequence[Run], sections: Sequence[dict[str, Any]],
            unrecorded: Sequence[Path]) -> str:
    environment = Environment(loader=PackageLoader("dtq_reports"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True)
    environment.globals.update(symbol=summary.SYMBOL, word=summary.WORD, meaning=summary.MEANING,
                               number=number, count=count)
    total = summary.tally(runs)
    accused = sum(bool(section["stories"]) for section in sections)
    clauses = _clauses(runs)
    held = sum(row["status"] == "holds" for row in clauses)
    tested = sum(row["status"] != "not claimed" for row in clauses)
    return environment.get_template("page.html").render(
        heading=_heading(runs), answer=summary.answer(runs, unrecorded=unrecorded), runs=sections,
        single=len(runs) == 1, clauses=clauses,
        stories_title=f"What went wrong in {count(accused, 'run')}" if len(runs) > 1 else
                      f"{count(len(sections[0]['stories']), 'violation')}, step by step",
        runs_title=f"{count(len(runs), 'run')} with {count(total.executions, 'execution')} of "
                   f"{count(total.accepted, 'task')}",
        clauses_title=f"{held} of {count(tested, 'clause')} held in every run that tested "
                      f"{'it' if held == 1 else 'them'}",
        details_title=f"{count(len(runs), 'run')}, one by one")


def _heading(runs: Sequence[Run]) -> str:
    headers = [run.history.header for run in runs]
    targets = listed(sorted({header.target for header in headers}))
    brokers = listed(sorted({header.broker for header in headers}))
    what = f"run {headers[0].run_id} ({headers[0].room}: {headers[0].trial})" \
        if len(runs) == 1 else f"{len(runs)} runs"
    began = min(header.began_at for header in headers)
    return f"dtq-contract report · {what} · target {targets} · broker {brokers} · began {began}"


def _clauses(runs: Sequence[Run]) -> list[dict[str, Any]]:
    texts = load_clauses()
    rows = summary.merged(runs)
    first: dict[str, str] = {}
    for row in rows:
        first.setdefault(row.sentence, row.clause)
    return [{"clause": row.clause, "status": row.status, "text": _words(texts, row.clause),
             "sentence": _unless_said(row.sentence, row.clause, first),
             "runs": [{"text": f"{summary.WORD[status]} in {len(trials)}",
                       "trials": ", ".join(trials)} for status, trials in row.runs.items()]}
            for row in rows]


def _words(texts: Mapping[str, Clause], clause: str) -> str:
    """The words of a clause without Markdown's signs; empty if the contract has no such clause."""
    return re.sub(r"[*`]", "", " ".join(texts[clause].text.split())) if clause in texts else ""


def _section(run: Run, anchor: str, pictures: Sequence[Picture], *, single: bool) -> dict[str, Any]:
    header, verdict = run.history.header, run.verdict
    convicted_as_it_must = run.is_control and summary.status_of(run) == "holds"
    held = sum(row.status == "holds" for row in verdict.rows)
    marks = run.history.marks
    return {
        "anchor": anchor, "trial": verdict.trial, "room": verdict.room, "target": verdict.target,
        "status": verdict.status, "sentence": verdict.sentence, "repeat": verdict.repeat,
        "open": single or summary.status_of(run) != "holds", "tally": summary.tally([run]),
        "remark": "as it must be: the harness itself deleted a task" if convicted_as_it_must
                  else "",
        "faults": _faults(run), "title": f"{held} of {count(len(verdict.rows), 'clause')} held",
        "rows": _rows(run), "marks": [
            {"name": mark.name, "sentence": mark.sentence,
             "symbol": "✓ seen" if mark.held else "✗ missing"} for mark in marks],
        "marks_title": f"{sum(mark.held for mark in marks)} of {count(len(marks), 'mark')} "
                       f"that prove that the faults bit {was(len(marks))} seen",
        "stories": [] if convicted_as_it_must and not single else story.stories(run),
        "pictures": [{"title": picture.title, "src": _data_uri(picture)} for picture in pictures],
        **_again(run),
        "facts_title": f"The run took {run.end_s:.1f} s",
        "facts": [("run", header.run_id), ("target", header.target), ("broker", header.broker),
                  ("seed", header.seed), ("began", header.began_at),
                  ("versions", ", ".join(f"{k} {v}" for k, v in header.versions.items())),
                  ("timing", ", ".join(f"{field.removesuffix('_ms')} "
                                       f"{getattr(header.timing, field)} ms"
                                       for field in header.timing.__struct_fields__)),
                  ("files", str(run.folder))],
        "schedule": run.schedule,
    }


def _rows(run: Run) -> list[dict[str, Any]]:
    texts = load_clauses()
    ordered = sorted(run.verdict.rows, key=lambda row: (-SEVERITY[row.status], row.clause))
    first: dict[str, str] = {}
    for row in ordered:
        first.setdefault(row.sentence, row.clause)
    return [{"status": row.status, "clause": row.clause, "text": _words(texts, row.clause),
             "sentence": _unless_said(row.sentence, row.clause, first),
             "findings": _findings(row), "checker": row.checker, "judged": row.judged}
            for row in ordered]


def _unless_said(sentence: str, clause: str, first: dict[str, str]) -> str:
    """The sentence, or where it stands already: one loss can break several clauses."""
    return sentence if first[sentence] == clause else f"The same as under {first[sentence]}."


def _findings(row: Verdict) -> list[str]:
    """The findings as sentences, where there are more than the row's own."""
    sentences = [finding.sentence for finding in row.findings]
    if len(sentences) < 2:
        return []
    left_out = len(sentences) - ROWS_AT_MOST
    more = [f"{count(left_out, 'more')}, in verdict.json."] if left_out > 0 else []
    return sentences[:ROWS_AT_MOST] + more


def _faults(run: Run) -> list[str]:
    """The faults of a run in a few words each: how often something was done to somebody."""
    effects: dict[str, int] = {}
    for spell in run.history.spells:
        effects[spell.effect] = effects.get(spell.effect, 0) + 1
    if run.deaths:
        effects["killed"] = len(run.deaths)
    return [f"{number(times)} × {effect.replace('_', ' ')}" for effect, times in effects.items()]

def _again(run: Run) -> dict[str, Any]:
    """The executions after the first of each task, with what justifies them."""
    table = run.executions[run.executions["number"] > 1]
    justified = int((table["standing"] == "justified").sum())
    left_out = len(table) - ROWS_AT_MOST
    return {
        "again_title": f"{number(justified)} of {count(len(table), 'further execution')} "
                       f"{was(justified)} justified" if len(table) else
                       executions_per_task.title(run),
        "again": [{"task_id": row.task_id, "number": row.number, "attempt": row.attempt,
                   "worker": row.worker, "start": evidence.ms(round(row.start_s * 1e9)),
                   "justified": JUSTIFIED[str(row.standing)], "because": row.because}
                  for row in rows_of(table.head(ROWS_AT_MOST))],
        "again_left_out": f"{count(left_out, 'more')} in {run.folder / 'history.jsonl'}."
                          if left_out > 0 else "",
    }


JUSTIFIED = {"justified": "✓ yes", "unjustified": "✗ no", "unknown": "? unknown"}


def _data_uri(picture: Picture) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.png).decode('ascii')}"

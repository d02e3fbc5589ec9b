"""The subcommand `judge`: a saved history in, a verdict out, without running anything.

Runs print their verdict with `show` too, so that judging again looks like judging the first time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dtq_conformance import lives, losses, terminal
from dtq_conformance.checker import judge
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.clauses import load_clauses
from dtq_conformance.exits import InputError
from dtq_conformance.history import History, HistoryError, read
from dtq_conformance.verdict import EXIT_CODE, RunVerdict, Verdict

_SHOWN = 10
"""Findings of one clause that are printed; `--json` has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance judge`."""
    parser.add_argument("history", type=Path, metavar="HISTORY", help="a history.jsonl of a run")
    parser.add_argument("--json", action="store_true", help="print the whole verdict as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Judge the history and print the verdict; the exit code is the verdict's."""
    verdict = judge_history(load(arguments.history))
    if arguments.json:
        print(msgspec.json.encode(verdict).decode())
    else:
        show(verdict, terminal.console())
    return EXIT_CODE[verdict.status]


def load(path: Path) -> History:
    """Read a history. Raises `InputError` if it is not one that can be judged."""
    try:
        return read(path)
    except HistoryError as error:
        raise InputError(str(error)) from error


def judge_history(history: History) -> RunVerdict:
    """Judge a history with every checker and the claims of the contract's clauses."""
    clauses = load_clauses().values()
    return judge(losses.apart(lives.apart(history)), CHECKERS,
                 {clause.id: clause.claim for clause in clauses},
                 {clause.id for clause in clauses if clause.level == "SHOULD"})


def show(verdict: RunVerdict, console: Console) -> None:
    """Print a verdict: a row for each clause, then each finding in a line of its own."""
    table = Table(title=f"{verdict.room} {verdict.trial}, target {verdict.target}, "
                        f"broker {verdict.broker}, seed {verdict.seed}", title_justify="left")
    for column in ("clause", "verdict", "judged", "checker"):
        table.add_column(column, no_wrap=True, justify="right" if column == "judged" else "left")
    table.add_column("explanation", overflow="fold")
    for row in verdict.rows:
        told = row.sentence if not row.findings else f"{len(row.findings)} found, told below"
        table.add_row(row.clause, Text(row.status, style=terminal.STYLE[row.status]),
                      str(row.judged), row.checker, Text(told))
    console.print(table)
    for row in verdict.rows:
        for line in _findings(row):
            console.print(Text(line), soft_wrap=True)
    for line in broken_promises([verdict]):
        console.print(Text(line), soft_wrap=True)
    if warnings := [row.clause for row in verdict.rows if row.status == "warning"]:
        console.print(Text(f"warning: {', '.join(warnings)}: what the contract asks for with "
                           "SHOULD was not kept. It changes no verdict and no exit code.",
                           style=terminal.STYLE["warning"]), soft_wrap=True)
    ending = verdict.sentence
    if verdict.status == "violated":
        ending = (f"violated, convicted by {', '.join(verdict.convicted_by)}. To run it again: "
                  f"{verdict.repeat}")
    console.print(Text(ending, style=terminal.STYLE[verdict.status]), soft_wrap=True)


def broken_promises(verdicts: Iterable[RunVerdict]) -> list[str]:
    """What the contract asks for and the target did not keep: each clause once, in its words."""
    broken = {row.clause for verdict in verdicts for row in verdict.rows
              if row.status in ("violated", "warning")}
    return [f"{clause.id} asks: {' '.join(clause.text.replace('*', '').split())}"
            for clause in load_clauses().values() if clause.id in broken]


def _findings(row: Verdict) -> list[str]:
    lines = [f"{row.clause} {finding.status}: {finding.sentence}"
             for finding in row.findings[:_SHOWN]]
    more = len(row.findings) - _SHOWN
    return [*lines, f"{row.clause}: {more} more findings, see --json"] if more > 0 else lines

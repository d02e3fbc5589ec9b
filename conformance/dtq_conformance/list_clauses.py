"""The subcommand `clauses`: every clause of the contract, and who tests it.

A clause is tested when a checker covers it and a case or a scenario sets out to test it. What
nobody tests is told with the reason. Scenarios are asked of the command `dtq-chaos`, since this
room does not know that one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from rich.text import Text

from dtq_conformance import terminal
from dtq_conformance.cases import CASES
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.clauses import JUDGE, Clause, load_clauses
from dtq_conformance.exits import CONFORMS, UNKNOWN, InputError
from dtq_conformance.history import FORMAT, Header, History, Timing
from dtq_conformance.targets.broken import DEFECTS
from dtq_conformance.untested import UNTESTED

State = Literal["tested", "untested", "by inspection", "binds the judge"]

STYLE: dict[State, str] = {"tested": "green", "untested": "yellow", "by inspection": "dim",
                           "binds the judge": "dim"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One clause, and all that has to do with it.

    `broken_engines` are those that a checker of this clause must convict. `house_tests` are files
    of this repository's tests that name the clause: tests of the reference, or of the judge if it
    is the one who is bound; they judge no other target. `reason` says why no trial tests it; it is
    empty where one does.
    """

    id: str
    level: str
    claim: str
    text: str
    state: State
    reason: str = ""
    checkers: list[str] = []
    cases: list[str] = []
    scenarios: list[str] = []
    broken_engines: list[str] = []
    house_tests: list[str] = []


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance clauses`."""
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list; exit 2 if a clause is tested by nobody without a reason."""
    rows = list_clauses(scenarios_by_clause())
    unexplained = [row.id for row in rows if row.state == "untested" and not row.reason]
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(
            {"clauses": rows, "counts": counts(rows), "unexplained": unexplained}).decode() + "\n")
    else:
        _print(rows)
    return UNKNOWN if unexplained else CONFORMS


def list_clauses(scenarios: dict[str, list[str]]) -> list[Row]:
    """Every clause, in the order of the contract; `scenarios` maps a clause to its scenarios."""
    cases = _by_clause((name, case.clauses) for name, case in CASES.items())
    checkers = covered()
    house = _house_tests()
    return [_row(clause, checkers.get(clause.id, []), cases.get(clause.id, []),
                 scenarios.get(clause.id, []), house.get(clause.id, []))
            for clause in load_clauses().values()]


def _row(clause: Clause, checkers: list[str], cases: list[str], scenarios: list[str],
         house_tests: list[str]) -> Row:
    reason = UNTESTED.get(clause.id, "")
    state: State = "untested"
    if checkers and (cases or scenarios):
        state, reason = "tested", ""
    elif clause.inspection:
        state, reason = "by inspection", clause.inspection
    elif clause.claim == JUDGE and not reason:
        state, reason = "binds the judge", "The judge's own tests hold it."
    return Row(id=clause.id, level=clause.level, claim=clause.claim, text=clause.text, state=state,
               reason=reason, checkers=checkers, cases=cases, scenarios=scenarios,
               broken_engines=[name for name, defect in DEFECTS.items()
                               if not set(checkers).isdisjoint(defect.caught_by)],
               house_tests=house_tests)


def covered() -> dict[str, list[str]]:
    """The checkers of each clause: a checker gives a verdict for each clause that it covers, even
    on a run in which nothing happened."""
    nothing = Header(
        format=FORMAT, run_id="", room="", trial="", target="", claims=[], broker="", seed=0,
        began_at="", began_ns=0, with_faults=False, clauses=[], versions={}, repeat="",
        timing=Timing(lease_ms=1, heartbeat_ms=1, reap_ms=1, schedule_ms=1, drain_ms=1,
                      recovery_ms=1, base_delay_ms=1, max_delay_ms=1, jitter=0.0))
    return _by_clause((name, [verdict.clause for verdict in check(History(nothing, ()))])
                      for name, check in CHECKERS.items())


def scenarios_by_clause() -> dict[str, list[str]]:
    """The scenarios of each clause, without canaries: in these the harness does the harm. Raises
    `InputError` if the chaos room cannot be asked."""
    asked = subprocess.run([sys.executable, "-m", "dtq_chaos", "list", "--json"],
                           capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        raise InputError("The scenarios cannot be listed here: install 'dtq-contract[all]'. "
                         f"{asked.stderr.strip()[-300:]}")
    return _by_clause((each["name"], each["clauses"]) for each in json.loads(asked.stdout)
                      if each["expects"] == "holds")


def _house_tests() -> dict[str, list[str]]:
    """The tests of the reference by the clauses that they name, and those of the judge by the
    clauses that bind it; files, relative to the checkout. None in a wheel."""
    root = Path(__file__).parents[2]
    return _by_clause(
        (path.relative_to(root).as_posix(), re.findall(pattern, path.read_text()))
        for room, pattern in (("reference", r"\b[A-Z]+-\d\d\b"), ("conformance", r"\bCLAIM-\d\d\b"))
        for path in sorted((root / "tests" / room).rglob("test_*.py")))


def _by_clause(named: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, clauses in named:
        for clause in dict.fromkeys(clauses):
            found.setdefault(clause, []).append(name)
    return found


def counts(rows: Iterable[Row]) -> dict[State, int]:
    """How many clauses are in each state."""
    found = dict.fromkeys(STYLE, 0)
    for row in rows:
        found[row.state] += 1
    return found


def _print(rows: list[Row]) -> None:
    console = terminal.console()
    for row in rows:
        console.print(Text.assemble(f"{row.id} · {row.level} · {row.claim}  ",
                                    (row.state, STYLE[row.state])))
        if row.reason or row.state == "untested":
            console.print(Text(f"    {row.reason or 'Nobody says why.'}"), soft_wrap=True)
        for word, names in (("cases", row.cases), ("scenarios", row.scenarios),
                            ("checkers", row.checkers), ("broken engines", row.broken_engines),
                            ("tests of this repository", row.house_tests)):
            if names:
                console.print(Text(f"    {word}: {', '.join(names)}"), soft_wrap=True)
    told = ", ".join(f"{number} {state}" for state, number in counts(rows).items())
    console.print(f"{len(rows)} clauses: {told}.", highlight=False)

"""The subcommand `selftest`: a detector is believed when it has been seen to detect.

Every broken engine, and the reference beside them, goes through all cases and scenarios. The kill
matrix (engine by checker) must show each engine convicted by the checkers that it declares and by
no undeclared one, and the reference accused of nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from dtq_conformance import exits, history, terminal
from dtq_conformance.cases import CASES
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.exits import InputError
from dtq_conformance.run import add_run_arguments, known_names, seeds
from dtq_conformance.scheduler import Ended, Job, side_by_side
from dtq_conformance.targets.broken import DEFECTS

REFERENCE = "reference"
SMOKE = "everything_runs_once"
"""The case whose twenty tasks a broken engine must still finish: a plain functional test, which
looks at results only, sees nothing wrong with it."""


MATRIX_WIDTH = 150
"""Columns of the matrix where there is no terminal to ask."""


@dataclass
class Engine:
    """What became of one engine in all its trials."""

    name: str
    convictions: Counter[str] = field(default_factory=Counter)
    convicted_in: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    trials: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance selftest`."""
    parser.add_argument("engines", nargs="*", metavar="ENGINE",
                        help=f"engines to judge, of: {REFERENCE}, {', '.join(DEFECTS)} "
                             "(default: all)")
    add_run_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Judge the broken engines and print the kill matrix; exit 0 if it is as declared."""
    known = dict.fromkeys([REFERENCE, *DEFECTS])
    names = known_names("engine", arguments.engines, known) or list(known)
    scenarios, not_run = _scenarios()
    first = seeds(arguments.seed, len(CASES) + len(scenarios))
    jobs = [Job(f"{engine} {trial}", [
        sys.executable, "-m", module, command, trial, "--target", _target(engine), "--broker",
        arguments.broker, "--out", str(arguments.out / "selftest" / engine), "--seed", str(seed)])
        for engine in names
        for (module, command, trial), seed in zip(
            [("dtq_conformance", "case", case) for case in CASES]
            + [("dtq_chaos", "scenario", scenario) for scenario in scenarios], first, strict=True)]
    ended = side_by_side(jobs, at_once=arguments.jobs, progress=not arguments.json)
    engines = [engine_of(name, ended) for name in names]
    failures = [failure for engine in engines for failure in failures_of(engine)]
    if arguments.json:
        _print_json(engines, failures, not_run)
    else:
        _print_matrix(engines, failures, not_run)
    if not_run and exits.in_ci():
        return exits.INPUT
    return exits.VIOLATED if failures else exits.CONFORMS


def _target(engine: str) -> str:
    return engine if engine == REFERENCE else f"broken:{engine}"


def _scenarios() -> tuple[list[str], dict[str, str]]:
    """The scenarios that can be run here, and those that cannot with the reason; asked of the
    command, since this room does not know that one. Canaries harm every engine: left out."""
    asked = subprocess.run([sys.executable, "-m", "dtq_chaos", "list", "--json"],
                           capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        raise InputError("The selftest needs the chaos room, which cannot be run here: install "
                         f"'dtq-contract[all]'. {asked.stderr.strip()[-300:]}")
    known = [each for each in json.loads(asked.stdout) if each["expects"] == "holds"]
    return ([each["name"] for each in known if not each["not_run"]],
            {each["name"]: each["not_run"] for each in known if each["not_run"]})


def engine_of(name: str, ended: list[Ended]) -> Engine:
    """What became of this engine, of all the trials that ended: jobs are named "ENGINE TRIAL"."""
    engine = Engine(name)
    for each in ended:
        owner, trial = each.name.split(" ")
        if owner != name:
            continue
        engine.trials += 1
        if each.verdict is None:
            engine.problems.append(f"{trial} has no verdict: {each.problem}")
            continue
        for checker in sorted({*each.verdict.convicted_by, *each.verdict.warned_by}):
            engine.convictions[checker] += 1
            engine.convicted_in.setdefault(checker, []).append(trial)
        if name == REFERENCE and each.verdict.status != "holds":
            engine.problems.append(f"{trial}: {each.verdict.sentence}")
        if trial == SMOKE and each.folder is not None:
            engine.problems += _unfinished(each.folder)
    return engine


def _unfinished(folder: Path) -> list[str]:
    """What a plain functional test would have found wrong: tasks that did not succeed."""
    looks = history.read(folder / "history.jsonl").looks
    failed = [task for task, seen in looks.items() if seen[-1].answer.get("status") != "succeeded"]
    return [f"the faultless smoke: task {task} did not succeed" for task in failed]


def failures_of(engine: Engine) -> list[str]:
    """Everything about an engine that is not as declared, as sentences."""
    found = [f"{engine.name}: {problem}" for problem in engine.problems]
    convicted = set(engine.convictions)
    if engine.name == REFERENCE:
        return found + [f"{REFERENCE} is accused by {checker} in "
                        f"{', '.join(engine.convicted_in[checker])}" for checker in convicted]
    defect = DEFECTS[engine.name]
    found += [f"{engine.name}: {checker} did not convict it, and must"
              for checker in sorted(set(defect.caught_by) - convicted)]
    return found + [
        f"{engine.name}: {checker} convicted it in {', '.join(engine.convicted_in[checker])}, "
        "and is not declared" for checker in sorted(convicted - {*defect.caught_by, *defect.also})]


def _print_matrix(engines: list[Engine], failures: list[str], not_run: dict[str, str]) -> None:
    console = terminal.console(width=MATRIX_WIDTH)
    table = Table(title="Kill matrix: in how many trials each checker convicted each engine "
                        "(* must, + may)", title_justify="left", box=box.SIMPLE_HEAD,
                  padding=(0, 0, 0, 1))
    table.add_column("engine", no_wrap=True)
    for number, checker in enumerate(CHECKERS, start=1):
        console.print(f"{number:3} {checker}")
        table.add_column(str(number), justify="right", no_wrap=True)
    for engine in engines:
        table.add_row(engine.name, *(_cell(engine, checker) for checker in CHECKERS))
    console.print(table)
    for name, reason in not_run.items():
        console.print(f"not run: {name}: {reason}", style="yellow", soft_wrap=True)
    for failure in failures:
        console.print(Text(failure, style="bold red"), soft_wrap=True)
    broken = [engine for engine in engines if engine.name != REFERENCE]
    wrong = {failure.partition(":")[0] for failure in failures}
    caught = sum(engine.name not in wrong for engine in broken)
    console.print(f"{caught} of {len(broken)} broken engines caught as declared, "
                  f"{len(failures)} failures, {len(not_run)} scenarios not run.")


def _cell(engine: Engine, checker: str) -> Text:
    count = engine.convictions[checker]
    if engine.name == REFERENCE:
        return Text(str(count) if count else "·", style="bold red" if count else "dim")
    defect = DEFECTS[engine.name]
    sign = "*" if checker in defect.caught_by else "+" if checker in defect.also else ""
    if not count:
        return Text(sign or "·", style="bold red" if sign == "*" else "dim")
    return Text(f"{count}{sign}", style="green" if sign else "bold red")


def _print_json(engines: list[Engine], failures: list[str], not_run: dict[str, str]) -> None:
    sys.stdout.write(msgspec.json.encode({
        "failures": failures, "not_run": not_run,
        "engines": [{"name": engine.name, "trials": engine.trials,
                     "convictions": engine.convicted_in, "problems": engine.problems,
                     "caught_by": () if engine.name == REFERENCE
                     else DEFECTS[engine.name].caught_by,
                     "also": () if engine.name == REFERENCE else DEFECTS[engine.name].also}
                    for engine in engines]}).decode() + "\n")

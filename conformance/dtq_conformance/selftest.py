"""The subcommand `selftest`: a detector is believed when it has been seen to detect.

The reference goes through all cases and scenarios, a broken engine through the smoke, the trials
that have shown it to be wrong (`shown.py`) and a few others, drawn; with `--all` through every
one. The kill matrix (engine by checker) must show each engine convicted by the checkers that it
declares and by no undeclared one, and the reference accused of nothing.
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

from dtq_conformance import exits, history, shown, terminal
from dtq_conformance.cases import CASES
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.exits import InputError
from dtq_conformance.journal import Asked, Journal
from dtq_conformance.run import add_run_arguments, known_names, seeds
from dtq_conformance.scheduler import Ended, Job, side_by_side
from dtq_conformance.targets.broken import DEFECTS
from dtq_conformance.targets.reference import REFERENCE as REFERENCE_KIND
from dtq_conformance.trial import begin

REFERENCE = "reference"
SMOKE = "everything_runs_once"
"""The case whose twenty tasks a broken engine must still finish: a plain functional test, which
looks at results only, sees nothing wrong with it."""


SAMPLE = 5

AGAIN = 2
"""How often a trial that has not convicted whom it convicted before is run again: some defects
show themselves only now and then."""

MATRIX_WIDTH = 200
"""Columns that all checkers need; a narrower terminal wraps the lines, and nothing is left out."""


@dataclass(frozen=True)
class Course:
    """The trials that an engine goes through, and those that it does not; of the former, those in
    which a checker convicted it before, and must again."""

    trials: list[str]
    left_out: list[str]
    must: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Engine:
    """What became of one engine in all its trials."""

    name: str
    convictions: Counter[str] = field(default_factory=Counter)
    convicted_in: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    trials: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    course: Course = field(default_factory=lambda: Course([], []))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance selftest`."""
    parser.add_argument("engines", nargs="*", metavar="ENGINE",
                        help=f"engines to judge, of: {REFERENCE}, {', '.join(DEFECTS)} "
                             "(default: all)")
    parser.add_argument("--all", action="store_true",
                        help="put every engine through every trial")
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N",
                        help="without --all: how many trials are drawn for each broken engine "
                             "beside those that convicted it before (default %(default)s)")
    parser.add_argument("--write-shown", action="store_true",
                        help="with --all: record which trials convicted each engine, in "
                             f"{shown.FILE.name}")
    parser.add_argument("--resume", type=Path, metavar="FOLDER",
                        help="go on with an interrupted selftest, with what that was asked for")
    add_run_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Judge the broken engines and print the kill matrix; exit 0 if it is as declared."""
    asked, journal, done = _asked(arguments)
    scenarios, not_run = _scenarios()
    trials = [*CASES, *scenarios]
    courses = {name: course_of(name, trials, asked) for name in asked.engines}
    wanted = {f"{engine} {trial}" for engine, course in courses.items()
              for trial in course.trials} - {each.name for each in done}
    ended = done
    for time in range(1 + AGAIN):
        ended += side_by_side(
            _jobs(wanted, courses, dict(zip(trials, seeds(asked.seed + time, len(trials)),
                                            strict=True)), asked, journal.folder),
            at_once=arguments.jobs, progress=not arguments.json, keep=journal.note,
            preload=() if arguments.anew else REFERENCE_KIND.preload)
        engines = [engine_of(name, ended, course) for name, course in courses.items()]
        wanted = {f"{engine.name} {trial}" for engine in engines for trial, _ in misses(engine)}
    failures = [failure for engine in engines for failure in failures_of(engine)]
    if arguments.json:
        _print_json(engines, failures, not_run, asked)
    else:
        _print_matrix(engines, failures, not_run, asked)
    if arguments.write_shown and asked.whole:
        shown.write({engine.name: shown_of(engine) for engine in engines if engine.name in DEFECTS
                     and set(DEFECTS[engine.name].caught_by) <= set(engine.convictions)})
    if not_run and exits.in_ci():
        return exits.INPUT
    return exits.VIOLATED if failures else exits.CONFORMS


def _asked(arguments: argparse.Namespace) -> tuple[Asked, Journal, list[Ended]]:
    """What is asked for, now or by the selftest that is gone on with, and what that has done."""
    if arguments.resume:
        journal = Journal(arguments.resume)
        asked, done = journal.read()
    else:
        if arguments.write_shown and not arguments.all:
            raise InputError("--write-shown records what a whole selftest found: say --all too.")
        known = dict.fromkeys([REFERENCE, *DEFECTS])
        engines = known_names("engine", arguments.engines, known) or list(known)
        asked = Asked(engines=engines, whole=arguments.all, sample=arguments.sample,
                      seed=arguments.seed, broker=arguments.broker)
        journal, done = Journal(begin("selftest", arguments.out).folder), []
        journal.begin(asked)
    print(f"seed {asked.seed}; if it is interrupted, it goes on with: dtq-conformance selftest "
          f"--resume {journal.folder}", file=sys.stderr)
    return asked, journal, done


def course_of(engine: str, trials: list[str], asked: Asked) -> Course:
    """The trials that this engine goes through, out of all."""
    must = None if engine == REFERENCE else shown.enough(
        shown.read().get(engine, {}), DEFECTS[engine].caught_by, trials)
    if asked.whole or must is None:
        return Course(trials, [])
    chosen = {SMOKE, *must}
    chosen |= set(shown.sample(engine, [trial for trial in trials if trial not in chosen],
                               asked.sample, asked.seed))
    return Course([trial for trial in trials if trial in chosen],
                  [trial for trial in trials if trial not in chosen], must)


def _jobs(wanted: set[str], courses: dict[str, Course], seed_of: dict[str, int], asked: Asked,
          folder: Path) -> list[Job]:
    return [Job(f"{engine} {trial}", [
        sys.executable, "-P", "-m",
        *(("dtq_conformance", "case") if trial in CASES else ("dtq_chaos", "scenario")), trial,
        "--target", _target(engine), "--broker", asked.broker, "--out", str(folder / engine),
        "--seed", str(seed_of[trial])])
        for engine, course in courses.items() for trial in course.trials
        if f"{engine} {trial}" in wanted]


def misses(engine: Engine) -> list[tuple[str, str]]:
    """The trials that convicted this engine before and have not now, each with by whom."""
    return [(trial, checker) for trial, checkers in engine.course.must.items()
            for checker in checkers
            if trial in engine.trials and trial not in engine.convicted_in.get(checker, [])]


def shown_of(engine: Engine) -> dict[str, list[str]]:
    """The trials in which those that must convict this engine did, from the quickest on."""
    return {checker: sorted(engine.convicted_in[checker], key=engine.seconds.__getitem__)
            for checker in DEFECTS[engine.name].caught_by}


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


def engine_of(name: str, ended: list[Ended], course: Course | None = None) -> Engine:
    """What became of this engine, of all the trials that ended: jobs are named "ENGINE TRIAL"."""
    engine = Engine(name, course=course or Course([], []))
    for each in ended:
        owner, trial = each.name.split(" ")
        if owner != name:
            continue
        if trial not in engine.trials:
            engine.trials.append(trial)
        engine.seconds[trial] = each.took_s
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
    found += [f"{engine.name}: {trial} does not convict it by {checker} any more, as it did when "
              f"{shown.FILE.name} was written. If that is right, write it anew: "
              f"selftest {engine.name} --all --write-shown"
              for trial, checker in misses(engine)]
    return found + [
        f"{engine.name}: {checker} convicted it in {', '.join(engine.convicted_in[checker])}, "
        "and is not declared" for checker in sorted(convicted - {*defect.caught_by, *defect.also})]


def _print_matrix(engines: list[Engine], failures: list[str], not_run: dict[str, str],
                  asked: Asked) -> None:
    console = terminal.console(width=MATRIX_WIDTH)
    console.width = max(console.width, MATRIX_WIDTH)
    table = Table(title="Kill matrix: in how many trials each checker convicted each engine "
                        "(* must, + may, ? in none that was run, of more)",
                  title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    table.add_column("engine", no_wrap=True)
    table.add_column("run", justify="right", no_wrap=True)
    for number, checker in enumerate(CHECKERS, start=1):
        console.print(f"{number:3} {checker}")
        table.add_column(str(number), justify="right", no_wrap=True)
    for engine in engines:
        there_are = len(engine.course.trials + engine.course.left_out)
        table.add_row(engine.name, f"{len(engine.trials)}/{there_are}",
                      *(_cell(engine, checker) for checker in CHECKERS))
    console.print(table)
    for name, reason in not_run.items():
        console.print(f"not run: {name}: {reason}", style="yellow", soft_wrap=True)
    for failure in failures:
        console.print(Text(failure, style="bold red"), soft_wrap=True)
    broken = [engine for engine in engines if engine.name != REFERENCE]
    wrong = {failure.partition(":")[0] for failure in failures}
    caught = sum(engine.name not in wrong for engine in broken)
    left_out = sum(len(engine.course.left_out) for engine in engines)
    console.print(f"{caught} of {len(broken)} broken engines caught as declared, "
                  f"{len(failures)} failures, {len(not_run)} scenarios not run.")
    if left_out:
        console.print(f"{left_out} trials were not run: for each engine {asked.sample} were drawn, "
                      f"with seed {asked.seed}, beside those that convicted it before. --all runs "
                      "every one.", soft_wrap=True)


def _cell(engine: Engine, checker: str) -> Text:
    count = engine.convictions[checker]
    none = "?" if engine.course.left_out else "·"
    if engine.name == REFERENCE:
        return Text(str(count) if count else none, style="bold red" if count else "dim")
    defect = DEFECTS[engine.name]
    sign = "*" if checker in defect.caught_by else "+" if checker in defect.also else ""
    if not count:
        return Text("*" if sign == "*" else none + sign,
                    style="bold red" if sign == "*" else "dim")
    return Text(f"{count}{sign}", style="green" if sign else "bold red")


def _print_json(engines: list[Engine], failures: list[str], not_run: dict[str, str],
                asked: Asked) -> None:
    sys.stdout.write(msgspec.json.encode({
        "failures": failures, "not_run": not_run, "asked": asked,
        "engines": [{"name": engine.name, "trials": len(engine.trials), "run": engine.trials,
                     "left_out": engine.course.left_out, "recorded": engine.course.must,
                     "convictions": engine.convicted_in, "problems": engine.problems,
                     "caught_by": () if engine.name == REFERENCE
                     else DEFECTS[engine.name].caught_by,
                     "also": () if engine.name == REFERENCE else DEFECTS[engine.name].also}
                    for engine in engines]}).decode() + "\n")

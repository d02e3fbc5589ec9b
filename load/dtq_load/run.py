"""The subcommand `run`: one workload without Locust's page, judged at its end.

Comes in: a workload's name, a target and a broker. Goes out: a run's folder, the verdict on the
terminal, and the exit code of the verdict.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
import sys
from pathlib import Path

import msgspec
from dtq_conformance import judging, terminal
from dtq_conformance.bench import Bench
from dtq_conformance.exits import InputError
from dtq_conformance.lab import LabProcess, interruptible
from dtq_conformance.run import default_out, input_faults
from dtq_conformance.target import load_target
from dtq_conformance.trial import Options, Run, conduct
from dtq_conformance.verdict import EXIT_CODE
from dtq_conformance.waiting import wait_for
from rich.table import Table

from dtq_load.assignment import Assignment, Meeting, read_table
from dtq_load.driving import TABLE, Plan, trial_of
from dtq_load.locust_process import require_alive, start_headless
from dtq_load.workload import Workload
from dtq_load.workloads import WORKLOADS

START_LIMIT_S = 60.0
"""How long Locust may take to start on a crowded machine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-load run`."""
    parser.add_argument("workload", metavar="WORKLOAD", help=f"one of {', '.join(WORKLOADS)}")
    parser.add_argument("--headless", action="store_true", required=True,
                        help="without Locust's page; with it, use `serve`")
    add_common_arguments(parser)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that `run` and `serve` share."""
    parser.add_argument("--target", default="reference", metavar="TARGET",
                        help="reference, broken:NAME, or module:attribute (default reference)")
    parser.add_argument("--broker", default="embedded", metavar="BROKER",
                        help="embedded, path, docker:IMAGE, or redis://… (default embedded)")
    parser.add_argument("--out", type=Path, default=default_out(), metavar="FOLDER",
                        help="where run folders are written (default %(default)s)")
    parser.add_argument("--seed", type=int, help="the seed of all that is random (default: drawn)")
    parser.add_argument("--users", type=_positive, metavar="N",
                        help="Locust's users (default: the workload's)")
    parser.add_argument("--tasks", type=_positive, metavar="N",
                        help="tasks in all (default: the workload's)")
    parser.add_argument("--seconds", type=_positive, metavar="N",
                        help="end the load after so long (default: the workload's)")
    parser.add_argument("--without-faults", action="store_true",
                        help="do no harm; a workload with faults is then unknown")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Run one workload; the exit code is the verdict's."""
    return run_headless(workload_named(arguments.workload), arguments)


def run_headless(workload: Workload, arguments: argparse.Namespace) -> int:
    """Run this workload without the page; the exit code is the verdict's."""
    def open_(bench: Bench, assignment: Assignment) -> LabProcess:
        folder = bench.lab.folder
        Meeting(folder).hand_over(assignment)
        locust = start_headless(
            bench.lab, folder, target=arguments.target,
            users=arguments.users or workload.users,
            seconds=arguments.seconds or workload.seconds)
        wait_for(lambda: assignment.was_taken_up or not locust.alive,
                 reason="Locust to start its test", limit_s=START_LIMIT_S)
        if not assignment.was_taken_up:
            require_alive(locust)
        return locust

    with interruptible(), input_faults():
        kind = load_target(arguments.target)
        plan = plan_of(arguments, workload, seed_of(arguments))
        run = conduct(trial_of(plan, open_), kind, options_of(arguments, plan))
    show(run, as_json=arguments.json)
    return EXIT_CODE[run.verdict.status]


def workload_named(name: str) -> Workload:
    """The workload. Raises `InputError` that names those that there are."""
    if name not in WORKLOADS:
        raise InputError(f"There is no workload {name!r}. Known are {', '.join(WORKLOADS)}.")
    return WORKLOADS[name]


def seed_of(arguments: argparse.Namespace) -> int:
    """The seed that was asked for, or a fresh one."""
    return secrets.randbelow(2**31) if arguments.seed is None else int(arguments.seed)


def plan_of(arguments: argparse.Namespace, workload: Workload, seed: int) -> Plan:
    """What these arguments ask for."""
    return Plan(workload=workload, target=arguments.target, seed=seed,
                tasks=arguments.tasks or workload.tasks,
                with_faults=not arguments.without_faults)


def options_of(arguments: argparse.Namespace, plan: Plan) -> Options:
    """How the trial is run, and the command that runs it again."""
    words = ["dtq-load", "run", plan.workload.name, "--headless", "--target", plan.target,
             "--seed", str(plan.seed)]
    for name in ("users", "tasks", "seconds"):
        value = getattr(arguments, name)
        words += [] if value is None else [f"--{name}", str(value)]
    words += ["--without-faults"] if arguments.without_faults else []
    words += [] if arguments.broker == "embedded" else ["--broker", arguments.broker]
    return Options(out=arguments.out, broker=arguments.broker, seed=plan.seed,
                   with_faults=plan.with_faults, repeat=shlex.join(words))


def show(run: Run, *, as_json: bool) -> None:
    """Print the verdict, Locust's rows and where the run is."""
    table = read_table(run.folder / TABLE)
    if as_json:
        verdict = run.verdict
        sys.stdout.write(msgspec.json.encode({
            "out": str(run.folder.parent), "exit_code": EXIT_CODE[verdict.status],
            "runs": [{"name": verdict.trial, "folder": str(run.folder), "status": verdict.status,
                      "as_expected": verdict.status == verdict.expects, "problem": "",
                      "verdict": verdict, "locust": table}]}).decode() + "\n")
        sys.stdout.flush()
        return
    console = terminal.console()
    judging.show(run.verdict, console)
    rows = Table(title="Locust's rows", title_justify="left")
    for column in ("row", "count", "failures", "per s", "median ms", "95 % ms", "99 % ms",
                   "longest ms"):
        rows.add_column(column, justify="left" if column == "row" else "right")
    for row in table:
        rows.add_row(row.name, str(row.count), str(row.failures), *(
            f"{value:.1f}" for value in (row.per_s, row.median_ms, row.p95_ms, row.p99_ms,
                                         row.max_ms)))
    console.print(rows)
    console.print(f"Run: {run.folder}", highlight=False, soft_wrap=True)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1")
    return value

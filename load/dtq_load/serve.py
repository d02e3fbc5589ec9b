"""The subcommand `serve`: Locust's page, and a judged run for each test that is started on it.

Comes in: clicks on Locust's page. Goes out: its address first; then, for each test, a broker and
workers of its own, and when it stops the verdict, the saved run and its report. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from dtq_conformance.bench import Bench
from dtq_conformance.lab import Lab, LabProcess, interruptible
from dtq_conformance.run import input_faults
from dtq_conformance.target import TargetKind, load_target
from dtq_conformance.trial import conduct
from dtq_conformance.waiting import wait_for
from rich.console import Console

from dtq_load.assignment import Assignment, Meeting
from dtq_load.driving import Plan, run_folder, trial_of
from dtq_load.locust_process import require_alive, start_page
from dtq_load.run import (
    add_common_arguments,
    options_of,
    plan_of,
    run_headless,
    seed_of,
    show,
    workload_named,
)
from dtq_load.workload import Workload
from dtq_load.workloads import WORKLOADS

DEFAULT = "steady_stream"
FOR_EVER_S = float("inf")
"""How long the page waits for its user."""


class Withdrawn(Exception):
    """The test was stopped on the page before its broker and workers were ready."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-load serve`."""
    parser.add_argument("--workload", default=DEFAULT, metavar="WORKLOAD",
                        help=f"one of {', '.join(WORKLOADS)} (default {DEFAULT})")
    parser.add_argument("--port", type=int, default=0, metavar="N",
                        help="the page's port (default: a free one)")
    parser.add_argument("--headless", action="store_true",
                        help="without the page: run the workload once, as `run` does")
    add_common_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until interrupted, which is the only way that this ends well."""
    workload = workload_named(arguments.workload)
    if arguments.headless:
        return run_headless(workload, arguments)
    logs = arguments.out / f"{time.strftime('%Y%m%d-%H%M%S')}-locust-page"
    try:
        return _serve(workload, logs, arguments)
    except KeyboardInterrupt:
        shutil.rmtree(logs, ignore_errors=True)
        raise


def _serve(workload: Workload, logs: Path, arguments: argparse.Namespace) -> NoReturn:
    console = Console(stderr=arguments.json)
    with interruptible(), input_faults():
        kind = load_target(arguments.target)
        with Lab(logs, broker=arguments.broker) as lab:
            locust, address = start_page(
                lab, lab.folder, target=arguments.target,
                users=arguments.users or workload.users,
                seconds=arguments.seconds or workload.seconds, port=arguments.port)
            console.print(f"Locust's page: {address}\nA test started there runs {workload.name} "
                          f"on {kind.name} with a broker and {workload.workers} workers of its "
                          "own; when it stops it is judged. Ctrl-C ends this.",
                          highlight=False, soft_wrap=True)
            page = Page(locust, lab.folder)
            seeds = random.Random(seed_of(arguments))
            while True:
                page.await_test()
                plan = plan_of(arguments, workload, seeds.randrange(2**31))
                _run(page, plan, kind, arguments, console)


class Page:
    """Locust's process with its page, and the folder in which it is met."""

    def __init__(self, locust: LabProcess, folder: Path) -> None:
        self._locust = locust
        self._meeting = Meeting(folder)

    def await_test(self) -> None:
        """Return when a test was started on the page."""
        def wanted() -> bool:
            require_alive(self._locust)
            return self._meeting.is_wanted

        wait_for(wanted, reason="a test to be started", limit_s=FOR_EVER_S, every_s=0.1)

    def open(self, bench: Bench, assignment: Assignment) -> LabProcess:
        """Give the started test its assignment. Raises `Withdrawn` if it was stopped before."""
        self._meeting.hand_over(assignment)

        def decided() -> bool:
            require_alive(self._locust)
            return assignment.was_taken_up or not self._meeting.is_wanted

        wait_for(decided, reason="Locust to take up its assignment", limit_s=FOR_EVER_S)
        if not assignment.was_taken_up:
            self._meeting.take_back()
            raise Withdrawn(str(run_folder(bench)))
        return self._locust


def _run(page: Page, plan: Plan, kind: TargetKind, arguments: argparse.Namespace,
         console: Console) -> None:
    console.print(f"A test was started; seed {plan.seed}.", highlight=False)
    try:
        run = conduct(trial_of(plan, page.open), kind, options_of(arguments, plan))
    except Withdrawn as withdrawn:
        shutil.rmtree(str(withdrawn), ignore_errors=True)
        console.print("It was stopped before it had begun; there is nothing to judge.")
        return
    show(run, as_json=arguments.json)
    console.print(_draw(run.folder), highlight=False, soft_wrap=True)


def _draw(folder: Path) -> str:
    """Have the run's page drawn, by the reports room's command; returns where it is."""
    drawn = subprocess.run([sys.executable, "-m", "dtq_reports", str(folder)], check=False,
                           capture_output=True, text=True)
    if drawn.returncode:
        return f"Report: none was drawn; dtq-report {folder} says why."
    return f"Report: {drawn.stdout.strip().splitlines()[-1]}"

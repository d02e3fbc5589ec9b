"""The subcommand `scenario`: one scenario in this process. It prints the run's folder."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from dtq_conformance.exits import InputError
from dtq_conformance.run import add_trial_arguments, known_names, run_one
from dtq_conformance.verdict import EXIT_CODE

from dtq_chaos.faults import FAULTS
from dtq_chaos.scenario import as_trial, planned
from dtq_chaos.scenarios import SCENARIOS
from dtq_chaos.schedule import Schedule, ScheduleError, load
from dtq_chaos.toxiproxy import ToxiproxyError, ToxiproxyMissing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-chaos scenario`."""
    parser.add_argument("scenario", metavar="SCENARIO")
    parser.add_argument("--without-faults", action="store_true")
    parser.add_argument("--schedule", type=Path, metavar="FILE",
                        help="a saved schedule.json to play instead of a planned one")
    add_trial_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the scenario; the exit code is the verdict's."""
    (name,) = known_names("scenario", [arguments.scenario], SCENARIOS)
    trial = as_trial(SCENARIOS[name], _schedule(name, arguments),
                     with_faults=not arguments.without_faults)
    without = " --without-faults" if arguments.without_faults else ""
    try:
        run = run_one(trial, arguments, with_faults=not arguments.without_faults,
                      repeat=f"dtq-chaos run {name} --target {arguments.target} "
                             f"--broker {arguments.broker} --seed {arguments.seed}{without}")
    except (ToxiproxyMissing, ToxiproxyError) as error:
        raise InputError(str(error)) from error
    print(run.folder)
    return EXIT_CODE[run.verdict.status]


def _schedule(name: str, arguments: argparse.Namespace) -> Schedule:
    if arguments.schedule is None:
        return planned(SCENARIOS[name], target=arguments.target, broker=arguments.broker,
                       seed=arguments.seed)
    try:
        schedule = load(arguments.schedule)
    except ScheduleError as error:
        raise InputError(str(error)) from error
    if schedule.scenario != name:
        raise InputError(f"{arguments.schedule} is a schedule of {schedule.scenario}, not of "
                         f"{name}.")
    known_names("fault", [entry.fault for entry in schedule.entries], FAULTS)
    return msgspec.structs.replace(schedule, target=arguments.target)

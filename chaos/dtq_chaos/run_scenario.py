"""The subcommand `scenario`: one scenario in this process. It prints the run's folder."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from dtq_conformance.exits import InputError
from dtq_conformance.run import add_trial_arguments, known_names, number_from_1, run_one
from dtq_conformance.verdict import EXIT_CODE

from dtq_chaos import storm
from dtq_chaos.faults import FAULTS
from dtq_chaos.scenario import Scenario, as_trial, planned
from dtq_chaos.scenarios import SCENARIOS
from dtq_chaos.schedule import Schedule, ScheduleError, load
from dtq_chaos.toxiproxy import ToxiproxyError, ToxiproxyMissing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-chaos scenario`."""
    parser.add_argument("scenario", metavar="SCENARIO")
    parser.add_argument("--without-faults", action="store_true")
    parser.add_argument("--seconds", type=number_from_1, default=storm.SECONDS, metavar="N",
                        help="how long a storm blows (default %(default)s)")
    parser.add_argument("--schedule", type=Path, metavar="FILE",
                        help="a saved schedule.json to play instead of a planned one")
    add_trial_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the scenario; the exit code is the verdict's."""
    known = {**SCENARIOS, storm.NAME: storm.scenario(
        seconds=arguments.seconds, restarts="://" not in arguments.broker)}
    (name,) = known_names("scenario", [arguments.scenario], known)
    trial = as_trial(known[name], _schedule(known[name], arguments),
                     with_faults=not arguments.without_faults)
    without = " --without-faults" if arguments.without_faults else ""
    try:
        run = run_one(trial, arguments, with_faults=not arguments.without_faults,
                      repeat=f"dtq-chaos {_command(name, arguments)} --target "
                             f"{arguments.target} --broker {arguments.broker} --seed "
                             f"{arguments.seed}{without}")
    except (ToxiproxyMissing, ToxiproxyError) as error:
        raise InputError(str(error)) from error
    print(run.folder)
    return EXIT_CODE[run.verdict.status]


def _command(name: str, arguments: argparse.Namespace) -> str:
    """What runs it again; of a schedule that was given, its file is the name."""
    if arguments.schedule is not None:
        return f"scenario {name} --schedule {arguments.schedule}"
    return f"storm --seconds {arguments.seconds}" if name == storm.NAME else f"run {name}"


def _schedule(scenario: Scenario, arguments: argparse.Namespace) -> Schedule:
    if arguments.schedule is None:
        return planned(scenario, target=arguments.target, broker=arguments.broker,
                       seed=arguments.seed)
    try:
        schedule = load(arguments.schedule)
    except ScheduleError as error:
        raise InputError(str(error)) from error
    if schedule.scenario != scenario.name:
        raise InputError(f"{arguments.schedule} is a schedule of {schedule.scenario}, not of "
                         f"{scenario.name}.")
    known_names("fault", [entry.fault for entry in schedule.entries], FAULTS)
    return msgspec.structs.replace(schedule, target=arguments.target)

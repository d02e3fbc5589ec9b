"""The subcommand `replay`: the scenario, target, seed and saved schedule of a run, once more."""

from __future__ import annotations

import argparse
from pathlib import Path

from dtq_conformance.exits import InputError
from dtq_conformance.history import Header, HistoryError, read
from dtq_conformance.run import add_output_arguments, conclude, known_names, run_all

from dtq_chaos import storm
from dtq_chaos.scenarios import SCENARIOS
from dtq_chaos.schedule import ScheduleError, load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-chaos replay`."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    add_output_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run it again; target, broker and seed are those of the run."""
    file = arguments.run / "schedule.json"
    try:
        schedule = load(file)
        header = _header(arguments.run)
    except (ScheduleError, HistoryError) as error:
        raise InputError(str(error)) from error
    known_names("scenario", [schedule.scenario], {**SCENARIOS, storm.NAME: None})
    arguments.target, arguments.broker = schedule.target, schedule.broker
    arguments.seed, arguments.jobs = schedule.seed, 1
    flags = [] if header.with_faults else ["--without-faults"]
    ended = run_all(["dtq_chaos", "scenario"], [schedule.scenario], arguments,
                    "--schedule", str(file), *flags)
    return conclude(ended, as_json=arguments.json, out=arguments.out, alone=True)


def _header(folder: Path) -> Header:
    return read(folder / "history.jsonl").header

"""The subcommand `case`: one case in this process. It prints the run's folder, nothing else."""

from __future__ import annotations

import argparse

from dtq_conformance.cases import CASES
from dtq_conformance.run import add_trial_arguments, known_names, run_one
from dtq_conformance.verdict import EXIT_CODE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance case`."""
    parser.add_argument("case", metavar="CASE")
    add_trial_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the case; the exit code is the verdict's."""
    (name,) = known_names("case", [arguments.case], CASES)
    run = run_one(CASES[name], arguments, with_faults=True,
                  repeat=f"dtq-conformance run {name} --target {arguments.target} "
                         f"--broker {arguments.broker} --seed {arguments.seed}")
    print(run.folder)
    return EXIT_CODE[run.verdict.status]

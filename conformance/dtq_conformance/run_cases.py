"""The subcommands `run` (cases side by side) and `case` (one of them, in this process)."""

from __future__ import annotations

import argparse

from dtq_conformance.cases import CASES
from dtq_conformance.claims import untested
from dtq_conformance.run import add_run_arguments, conclude, known_names, partition, run_all
from dtq_conformance.target import load_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance run`."""
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help=f"cases to run, of: {', '.join(CASES)} (default: all)")
    add_run_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run cases side by side, each in a process of its own, and print their verdicts. After all
    cases it is told what no trial tests yet."""
    names = known_names("case", arguments.cases, CASES) or list(CASES)
    names, skipped = partition({name: CASES[name] for name in names}, arguments.target)
    ended = run_all(["dtq_conformance", "case"], names, arguments)
    missing = {} if arguments.cases else untested(frozenset(load_target(arguments.target).claims))
    return conclude(ended, as_json=arguments.json, out=arguments.out, not_claimed=skipped,
                    untested=missing)

"""The subcommands `run` (scenarios side by side) and `scenario` (one of them, in this process)."""

from __future__ import annotations

import argparse
import sys

from dtq_conformance.exits import InputError
from dtq_conformance.run import add_run_arguments, conclude, known_names, partition, run_all

from dtq_chaos import toxiproxy
from dtq_chaos.scenarios import SCENARIOS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-chaos run`."""
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO",
                        help=f"scenarios to run, of: {', '.join(SCENARIOS)}")
    parser.add_argument("--all", action="store_true", help="run every scenario")
    parser.add_argument("--without-faults", action="store_true",
                        help="leave the faults out, to see that no scenario passes without them")
    add_run_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run scenarios side by side, each in a process of its own, and print their verdicts."""
    names = known_names("scenario", arguments.scenarios, SCENARIOS)
    if bool(names) == arguments.all:
        raise InputError("Name the scenarios to run, or say --all. Known are "
                         f"{', '.join(SCENARIOS)}.")
    names = names or list(SCENARIOS)
    names, unclaimed = partition({name: SCENARIOS[name] for name in names}, arguments.target)
    skipped = not_run(names)
    names = [name for name in names if name not in skipped]
    flags = ["--without-faults"] if arguments.without_faults else []
    ended = run_all(["dtq_chaos", "scenario"], names, arguments, *flags)
    for name, reason in skipped.items():
        print(f"not run: {name}: {reason}", file=sys.stderr)
    return conclude(ended, as_json=arguments.json, out=arguments.out, not_run=skipped,
                    not_claimed=unclaimed, alone=not arguments.all)


def not_run(names: list[str]) -> dict[str, str]:
    """The scenarios that cannot be run here, each with the reason."""
    needing = [name for name in names if SCENARIOS[name].needs_toxiproxy]
    try:
        if needing:
            toxiproxy.find()
    except toxiproxy.ToxiproxyMissing as missing:
        return dict.fromkeys(needing, str(missing))
    return {}

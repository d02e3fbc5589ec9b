"""The subcommand `storm`: one storm or several with seeds of their own, each in its own process."""

from __future__ import annotations

import argparse
import sys

from dtq_conformance.claims import not_claimed
from dtq_conformance.exits import InputError
from dtq_conformance.run import (
    add_run_arguments,
    conclude,
    job_of,
    number_from_1,
    run_jobs,
    seeds,
)
from dtq_conformance.scheduler import TRIAL_LIMIT_S
from dtq_conformance.target import UnknownTarget, load_target

from dtq_chaos import storm, toxiproxy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-chaos storm`."""
    parser.add_argument("--seconds", type=number_from_1, default=storm.SECONDS, metavar="N",
                        help="how long each blows (default %(default)s)")
    parser.add_argument("--storms", type=number_from_1, default=1, metavar="K",
                        help="how many, with seeds that are drawn from the one given "
                             "(default %(default)s)")
    parser.add_argument("--without-faults", action="store_true",
                        help="leave the faults out, to see that no storm passes without them")
    add_run_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run storms side by side and print their verdicts, each under the name of its seed."""
    try:
        claims = frozenset(load_target(arguments.target).claims)
    except UnknownTarget as error:
        raise InputError(str(error)) from error
    if lacking := not_claimed({storm.NAME: storm.scenario()}, claims):
        return conclude([], as_json=arguments.json, out=arguments.out, not_claimed=lacking)
    try:
        toxiproxy.find()
    except toxiproxy.ToxiproxyMissing as missing:
        print(f"not run: {storm.NAME}: {missing}", file=sys.stderr)
        return conclude([], as_json=arguments.json, out=arguments.out,
                        not_run={storm.NAME: str(missing)})
    drawn = [arguments.seed] if arguments.storms == 1 else seeds(arguments.seed, arguments.storms)
    flags = ["--seconds", str(arguments.seconds),
             *(["--without-faults"] if arguments.without_faults else [])]
    ended = run_jobs([job_of(f"{storm.NAME} {seed}", ["dtq_chaos", "scenario", storm.NAME],
                             arguments, seed, *flags, limit_s=TRIAL_LIMIT_S + arguments.seconds)
                      for seed in drawn], arguments)
    return conclude(ended, as_json=arguments.json, out=arguments.out, alone=True)

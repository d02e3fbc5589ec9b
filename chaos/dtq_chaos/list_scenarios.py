"""The subcommand `list`: every scenario, its story and the clauses that it is about."""

from __future__ import annotations

import argparse
import sys

import msgspec

from dtq_chaos.run_scenarios import not_run
from dtq_chaos.scenarios import SCENARIOS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-chaos list`."""
    parser.add_argument("--json", action="store_true", help="print as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the scenarios."""
    missing = not_run(list(SCENARIOS))
    known = [{"name": each.name, "story": each.story, "clauses": each.clauses,
              "expects": each.expects, "not_run": missing.get(each.name, "")}
             for each in SCENARIOS.values()]
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(known).decode() + "\n")
        return 0
    for each in SCENARIOS.values():
        print(f"{each.name}\n    {each.story}\n    {', '.join(each.clauses)}")
        if each.name in missing:
            print(f"    not run here: {missing[each.name]}")
    return 0

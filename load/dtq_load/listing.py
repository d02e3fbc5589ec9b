"""The subcommand `list`: the workloads and what each is for."""

from __future__ import annotations

import argparse
import sys

import msgspec
from dtq_conformance import terminal
from dtq_conformance.exits import CONFORMS
from rich.table import Table

from dtq_load.workloads import WORKLOADS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-load list`."""
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    if arguments.json:
        sys.stdout.write(msgspec.json.encode([
            {"name": workload.name, "story": workload.story, "clauses": workload.clauses}
            for workload in WORKLOADS.values()]).decode() + "\n")
        return CONFORMS
    table = Table()
    for column in ("workload", "what happens", "clauses"):
        table.add_column(column, overflow="fold")
    for workload in WORKLOADS.values():
        table.add_row(workload.name, workload.story, ", ".join(workload.clauses))
    terminal.console().print(table)
    return CONFORMS

"""The command `dtq-load`: one line per subcommand here, the work in its module.

A subcommand's module has two functions: `add_arguments(parser)`, and `execute(arguments)`, which
returns an exit code. Modules are imported inside the guard of `exits.run_command`, so that even a
failed import ends with the exit code that says "the harness itself failed". Options without a
subcommand are those of `serve`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from dtq_conformance.exits import Parser, run_command

COMMANDS = {
    "run": ("dtq_load.run", "run one workload without Locust's page, and judge it"),
    "serve": ("dtq_load.serve", "start Locust's page, and judge each test that is run on it"),
    "list": ("dtq_load.listing", "list the workloads"),
}
"""Each subcommand with the module that does it and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; the codes are those of `exits`."""
    return run_command(_dispatch, argv)


def _dispatch(argv: Sequence[str]) -> int:
    parser = Parser(prog="dtq-load", description="Put a task queue under load, and judge it.")
    subcommands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name, (module, purpose) in COMMANDS.items():
        modules[name] = importlib.import_module(module)
        modules[name].add_arguments(subcommands.add_parser(name, help=purpose,
                                                           description=purpose))
    if argv and argv[0].startswith("-") and argv[0] not in ("-h", "--help"):
        argv = ["serve", *argv]
    arguments = parser.parse_args(argv)
    code: int = modules[arguments.command].execute(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())

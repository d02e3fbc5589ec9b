"""The command `dtq-conformance`: one line per subcommand here, the work in its module.

A subcommand's module has two functions: `add_arguments(parser)`, and `execute(arguments)`, which
returns an exit code. Modules are imported inside the guard of `exits.run_command`, so that even a
failed import ends with the exit code that says "the harness itself failed".
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from dtq_conformance.exits import Parser, run_command

COMMANDS = {
    "run": ("dtq_conformance.run_cases", "judge a target by the cases of the contract"),
    "case": ("dtq_conformance.run_case", "run one case in this process"),
    "judge": ("dtq_conformance.judging", "judge a saved history again"),
    "tamper": ("dtq_conformance.tamper", "alter a history in one way, to see the judge object"),
}
"""Each subcommand with the module that does it and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; the codes are those of `exits`."""
    return run_command(_dispatch, argv)


def _dispatch(argv: Sequence[str]) -> int:
    parser = Parser(prog="dtq-conformance", description="Judge a task queue by its contract.")
    subcommands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name, (module, purpose) in COMMANDS.items():
        modules[name] = importlib.import_module(module)
        modules[name].add_arguments(subcommands.add_parser(name, help=purpose,
                                                           description=purpose))
    arguments = parser.parse_args(argv)
    code: int = modules[arguments.command].execute(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())

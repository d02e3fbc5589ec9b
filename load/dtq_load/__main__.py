"""The command `dtq-load`: one line per subcommand here, the work in its module.

A subcommand's module has two functions: `add_arguments(parser)`, and `execute(arguments)`, which
returns an exit code. Modules are imported inside the guard of `exits.run_command`, so that even a
failed import ends with the exit code that says "the harness itself failed". Options without a
subcommand are those of `serve`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dtq_conformance.exits import dispatch

COMMANDS = {
    "run": ("dtq_load.run", "run one workload without Locust's page, and judge it"),
    "serve": ("dtq_load.serve", "start Locust's page, and judge each test that is run on it"),
    "list": ("dtq_load.listing", "list the workloads"),
    "bench": ("dtq_load.bench.command", "measure this engine beside its peers"),
}
"""Each subcommand with the module that does it and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; options without one are those of `serve`."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        words = ["serve", *words]
    return dispatch("dtq-load", "Put a task queue under load, and judge it.", COMMANDS, words)


if __name__ == "__main__":
    sys.exit(main())

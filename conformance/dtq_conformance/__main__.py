"""The command `dtq-conformance`: one line per subcommand here, the work in its module.

A subcommand's module has two functions: `add_arguments(parser)`, and `execute(arguments)`, which
returns an exit code. Modules are imported inside the guard of `exits.run_command`, so that even a
failed import ends with the exit code that says "the harness itself failed".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dtq_conformance.exits import dispatch

COMMANDS = {
    "run": ("dtq_conformance.run_cases", "judge a target by the cases of the contract"),
    "case": ("dtq_conformance.run_case", "run one case in this process"),
    "selftest": ("dtq_conformance.selftest", "see every broken engine caught"),
    "clauses": ("dtq_conformance.list_clauses", "list the clauses, and who tests each"),
    "fuzz": ("dtq_conformance.fuzz", "draw lives of tasks, play them, shrink a bad one"),
    "judge": ("dtq_conformance.judging", "judge a saved history again"),
    "tamper": ("dtq_conformance.tamper", "alter a history in one way, to see the judge object"),
}
"""Each subcommand with the module that does it and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; the codes are those of `exits`."""
    return dispatch("dtq-conformance", "Judge a task queue by its contract.", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())

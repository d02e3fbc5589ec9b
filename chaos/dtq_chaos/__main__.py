"""The command `dtq-chaos`: one line per subcommand here, the work in its module."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dtq_conformance.exits import dispatch

COMMANDS = {
    "run": ("dtq_chaos.run_scenarios", "tell stories with faults, and judge the target by them"),
    "storm": ("dtq_chaos.run_storms", "random work under random faults, drawn from seeds"),
    "replay": ("dtq_chaos.replay", "run a saved schedule again"),
    "list": ("dtq_chaos.list_scenarios", "list the scenarios"),
    "scenario": ("dtq_chaos.run_scenario", "run one scenario in this process"),
}
"""Each subcommand with the module that does it and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; the codes are those of `exits`."""
    return dispatch("dtq-chaos", "Tell a task queue stories with faults, and judge it.",
                    COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())

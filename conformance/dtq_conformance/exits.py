"""How a command of this house ends: its exit codes, and the guard around every `main`.

Comes in: a function from arguments to an exit code. Goes out: a code that tells a verdict from a
bad question, and both from a broken harness. It imports nothing but the standard library, so that
the guard stands even when the rest cannot be imported.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

CONFORMS = 0
VIOLATED = 1
UNKNOWN = 2
INPUT = 4
"""The target, the broker, the usage or the input is at fault; 3 is reserved."""
HARNESS = 5
"""The harness itself failed: nothing was learned about the target."""
INTERRUPTED = 130


def in_ci() -> bool:
    """Whether nothing may be missing: what is skipped elsewhere is an error under CI=true."""
    return os.environ.get("CI") == "true"


class InputError(Exception):
    """The question cannot be answered as asked. The message is one sentence for the user."""


class Parser(argparse.ArgumentParser):
    """An argument parser that ends with `INPUT`: argparse's own 2 would read as "unknown"."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit with `INPUT`."""
        self.print_usage(sys.stderr)
        self.exit(INPUT, f"{self.prog}: {message}\n")


def run_command(main: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Call `main` with the arguments (those of the process if None); return its exit code.

    `InputError` becomes one sentence on stderr and `INPUT`; an interruption `INTERRUPTED`; any
    other exception, a failed import included, its traceback and `HARNESS`.
    """
    try:
        return main(sys.argv[1:] if argv is None else argv)
    except InputError as error:
        print(error, file=sys.stderr)
        return INPUT
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as ending:
        return _code_of(ending.code)
    except BaseException:
        traceback.print_exc()
        return HARNESS


def dispatch(program: str, purpose: str, commands: Mapping[str, tuple[str, str]],
             argv: Sequence[str] | None = None) -> int:
    """Run one subcommand of a program and return its exit code.

    `commands` maps a name to a module and what it is for. The module has `add_arguments(parser)`
    and `execute(arguments)`, which returns an exit code; it is imported inside the guard, and only
    if it is the one that was asked for: starting up is what a short trial takes longest for.
    """
    def main(arguments: Sequence[str]) -> int:
        parser = Parser(prog=program, description=purpose)
        subcommands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        parsers = {name: subcommands.add_parser(name, help=what, description=what)
                   for name, (_, what) in commands.items()}
        asked = next((word for word in arguments if not word.startswith("-")), "")
        if asked not in commands:
            parser.parse_args(arguments)  # help, or an error that names what is known
            return CONFORMS
        module = importlib.import_module(commands[asked][0])
        module.add_arguments(parsers[asked])
        code: int = module.execute(parser.parse_args(arguments))
        return code

    return run_command(main, argv)


def _code_of(code: Any) -> int:
    """The number that Python would exit with, except that a message is the harness's failure."""
    if code is None:
        return CONFORMS
    return code if isinstance(code, int) else HARNESS

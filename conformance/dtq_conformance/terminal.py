"""What is printed for people: one width where there is no terminal, one style for each verdict."""

from __future__ import annotations

from rich.console import Console

from dtq_conformance.verdict import Status

WIDTH = 130
"""Columns where there is no terminal to ask: a log of CI, a pipe, a file."""

STYLE: dict[Status, str] = {"holds": "green", "violated": "bold red", "unknown": "yellow",
                            "not claimed": "dim", "warning": "magenta"}


def console(*, stderr: bool = False, width: int = WIDTH) -> Console:
    """A console of the terminal's width, or of `width` columns where there is no terminal."""
    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=width)

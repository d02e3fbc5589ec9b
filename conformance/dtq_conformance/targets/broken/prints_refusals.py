"""Prints on standard output why a command was refused."""

from __future__ import annotations

import sys

from dtq_reference import cli

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def complain(message: object, code: int) -> int:
        sys.stdout.write(f"dtq: {message}\n")
        return code

    cli._complain = complain


DEFECT = Defect(
    "prints_refusals",
    "Prints on standard output why a command was refused.",
    caught_by=("commands_as_promised",), also=("settings_checked_at_the_start",),
    put_in=_put_in)

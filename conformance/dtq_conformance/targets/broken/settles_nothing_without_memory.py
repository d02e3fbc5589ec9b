"""Lets the server refuse a settlement while it is out of memory."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "#!lua flags=allow-oom\n", "#!lua\n")


DEFECT = Defect(
    "settles_nothing_without_memory",
    "Lets the server refuse a settlement while it is out of memory.",
    caught_by=("broker_trouble_passes",), also=(),
    put_in=_put_in)

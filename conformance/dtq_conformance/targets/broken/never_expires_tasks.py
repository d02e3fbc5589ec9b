"""Keeps the record of a succeeded task for ever."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  if status ~= 'dead_lettered' then redis.call('EXPIRE',",
            "  if status == 'failed' then redis.call('EXPIRE',")


DEFECT = Defect(
    "never_expires_tasks",
    "Keeps the record of a succeeded task for ever.",
    caught_by=("nothing_left_behind",),
    also=("keys_as_promised",),
    put_in=_put_in)

"""Counts what it has settled under a key without the prefix."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  return record(task, outcome, settled, mine)\n",
            "  redis.call('INCR', 'settled')\n  return record(task, outcome, settled, mine)\n")


DEFECT = Defect(
    "counts_beside_its_prefix",
    "Counts what it has settled under a key without the prefix.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)

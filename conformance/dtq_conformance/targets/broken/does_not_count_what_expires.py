"""Counts only the tasks that end with an attempt."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "0, last_ids, ended}", "0, last_ids, {}}")
    rewrite("promote", "unknown, ended}", "unknown, {}}")


DEFECT = Defect(
    "does_not_count_what_expires",
    "Counts only the tasks that end with an attempt.",
    caught_by=("metrics_count_right",), also=(),
    put_in=_put_in)

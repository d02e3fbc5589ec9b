"""Looks at the time to live when a task is taken, and not when it is due."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("promote", "    elseif task.expires_at and", "    elseif false and")


DEFECT = Defect(
    "promotes_what_is_too_old",
    "Looks at the time to live when a task is taken, and not when it is due.",
    caught_by=("no_start_after_ttl",), also=(),
    put_in=_put_in)

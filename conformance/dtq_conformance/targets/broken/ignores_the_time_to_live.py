"""Tasks live for ever."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "  elseif may_expire and", "  elseif false and")
    rewrite("promote", "    elseif task.expires_at and", "    elseif false and")


DEFECT = Defect(
    "ignores_the_time_to_live",
    "Starts tasks whose time to live is over.",
    caught_by=("no_start_after_ttl",),
    also=("attempts_bounded", "fields_as_promised", "keys_as_promised", "nothing_lost"),
    put_in=_put_in)

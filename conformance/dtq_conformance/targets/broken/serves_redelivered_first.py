"""Takes ended leases of every level before it looks at new work."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "local stop\nfor _, level in ipairs(filled) do\n",
            "local stop\n"
            "for level = 1, call.reap and 10 or 0 do stop = stop or take_ended(level) end\n"
            "for _, level in ipairs(filled) do\n"
            "  if stop or #tasks >= call.room then break end\n")


DEFECT = Defect(
    "serves_redelivered_first",
    "Takes ended leases of every level before it looks at new work.",
    caught_by=("strict_priority",), also=(),
    put_in=_put_in)

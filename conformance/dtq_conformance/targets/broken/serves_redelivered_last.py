"""Looks for ended leases only when new work has left room: as long as work comes, it has none."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "then stop = take_ended(level) end\n  stop = stop or take_new(level)\n",
            "then stop = nil end\n  stop = take_new(level)\n")
    rewrite("take", "local last_ids = {}\nif not stop and",
            "for level = 1, 10 do\n"
            "  if stop or #tasks >= call.room then break end\n"
            "  stop = take_ended(level)\n"
            "end\n"
            "local last_ids = {}\nif not stop and")


DEFECT = Defect(
    "serves_redelivered_last",
    "Looks for ended leases only when new work has left room: as long as work comes, it has none.",
    caught_by=("strict_priority",), also=(),
    put_in=_put_in)

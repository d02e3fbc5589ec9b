"""A pause for new work only."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "if redis.call('EXISTS', KEYS[13]) == 1 then return {'paused', tasks, 0, {}, "
            "ended} end\n",
            "local paused = redis.call('EXISTS', KEYS[13]) == 1\n")
    rewrite("take", "local function take_new(level)\n"
            "  while #tasks",
            "local function take_new(level)\n"
            "  while not paused and #tasks")


DEFECT = Defect(
    "redelivers_in_a_pause",
    "Takes ended leases of a paused queue.",
    caught_by=("paused_means_paused",), also=(),
    put_in=_put_in)

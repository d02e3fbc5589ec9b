"""A pause that nobody looks at."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "if redis.call('EXISTS', KEYS[13]) == 1 then return {'paused', tasks, 0, {}, "
            "ended} end\n",
            "")


DEFECT = Defect(
    "ignores_pauses",
    "Takes from a paused queue.",
    caught_by=("paused_means_paused",), also=("keys_as_promised",),
    put_in=_put_in)

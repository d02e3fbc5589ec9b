"""Does not give a process again what a lost answer held, once the queue is paused."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite

PAUSED = "if redis.call('EXISTS', KEYS[13]) == 1 then return {'paused', tasks, 0, {}, ended} end\n"


def _put_in() -> None:
    rewrite("take", "local alone = false\n", f"local alone = false\n{PAUSED}")


DEFECT = Defect(
    "gives_nothing_again_in_a_pause",
    "Does not give a process again what a lost answer held, once the queue is paused.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)

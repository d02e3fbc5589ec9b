"""Purges a queue and keeps its name and its streams."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("forget_queue", "for level = 1, 10 do redis.call('DEL', KEYS[level]) end\n"
            "redis.call('SREM', KEYS[12], call.queue)\n", "")


DEFECT = Defect(
    "keeps_the_names_of_purged_queues",
    "Purges a queue and keeps its name and its streams.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)

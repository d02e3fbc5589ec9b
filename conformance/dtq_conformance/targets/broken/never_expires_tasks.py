"""Keeps the record of a succeeded task for ever."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "    redis.call('HSET', task, 'status', status)\n"
            "    redis.call('EXPIRE', task, call.retention_s)\n",
            "    redis.call('HSET', task, 'status', status)\n")


DEFECT = Defect(
    "never_expires_tasks",
    "Keeps the record of a succeeded task for ever.",
    caught_by=("nothing_left_behind",), also=(),
    put_in=_put_in)

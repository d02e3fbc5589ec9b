"""A dead letter whose task is forgotten."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  if status ~= 'dead_lettered' then redis.call('EXPIRE', task.key, "
            "call.retention_s) end",
            "  redis.call('EXPIRE', task.key, call.retention_s)")


DEFECT = Defect(
    "lets_dead_letters_expire",
    "Lets the record of a dead-lettered task expire while its letter exists.",
    caught_by=("nothing_left_behind",), also=(),
    put_in=_put_in)

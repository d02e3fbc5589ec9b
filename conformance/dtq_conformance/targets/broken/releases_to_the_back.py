"""Gives back what it has not started by an entry of its own, behind all that waits."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("release", "  set_waiting(stream, entry[1])\n",
            "  acknowledge(stream, entry[1])\n"
            "  redis.call('HSET', task.key, 'entry_id',\n"
            "             redis.call('XADD', stream, '*', unpack(entry[2])))\n")


DEFECT = Defect(
    "releases_to_the_back",
    "Gives back what it has not started on a new entry, behind all that waits.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)

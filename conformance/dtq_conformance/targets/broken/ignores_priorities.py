"""Puts every submission into the stream of one level."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "redis.call('XADD', KEYS[1], ",
            "redis.call('XADD', (string.gsub(KEYS[1], '%d$', '5')), ")


DEFECT = Defect(
    "ignores_priorities",
    "Puts every submission into the stream of one level.",
    caught_by=("strict_priority",), also=(),
    put_in=_put_in)

"""Makes a lost consumer group anew at the end of its stream: what waits there is skipped."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("register", "KEYS[level], GROUP, '0', 'MKSTREAM'",
            "KEYS[level], GROUP, call.again and '$' or '0', 'MKSTREAM'")


DEFECT = Defect(
    "makes_groups_anew_at_the_end",
    "Makes a lost consumer group anew at the end of its stream: what waits there is skipped.",
    caught_by=("nothing_lost",), also=("attempts_bounded",), put_in=_put_in)

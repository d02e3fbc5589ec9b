"""Goes on taking work when another process has its id."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "if worker[1] ~= call.incarnation then return {'other', {}, 0, {}, {}} end\n",
            "")
    rewrite("renew", "if worker[1] ~= call.incarnation then return {'other', held} end\n", "")


DEFECT = Defect(
    "stays_beside_its_namesake",
    "Goes on taking work when another process has its id.",
    caught_by=("gives_way_to_its_namesake",), also=(),
    put_in=_put_in)

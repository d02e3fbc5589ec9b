"""Acknowledges an entry and leaves it in its stream."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    for script in ("settle", "take"):
        rewrite(script, "  redis.call('XDEL', stream, ...)\n", "")


DEFECT = Defect(
    "acknowledges_without_deleting",
    "Acknowledges an entry and leaves it in its stream.",
    caught_by=("nothing_left_behind",),
    also=("answers_as_promised", "depth_is_exact", "keys_as_promised", "metrics_count_right",
          "one_way_leads_to_each_unfinished_task"),
    put_in=_put_in)

"""Leaves what is due in the schedule while its queue is paused."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite

IS_PAUSED = ("redis.call('EXISTS', string.sub(call.task_prefix, 1, -6) .. 'queue:' .. "
             "task.queue .. ':paused') == 1")


def _put_in() -> None:
    rewrite("promote", "  elseif not place_of[task.queue] then",
            f"  elseif {IS_PAUSED} then\n    unknown = 0\n"
            "  elseif not place_of[task.queue] then")


DEFECT = Defect(
    "promotes_nothing_in_a_pause",
    "Leaves what is due in the schedule while its queue is paused.",
    caught_by=("paused_means_paused",), also=("keys_as_promised", "no_start_after_ttl"),
    put_in=_put_in)

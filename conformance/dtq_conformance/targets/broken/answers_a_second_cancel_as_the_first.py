"""Answers a cancel of a task that was cancelled before as if it had done it just now."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("cancel", "if STATE_OF_KEY[task.status] then return {'terminal', task.status} end\n",
            "if task.status == 'cancelled' then return {'cancelled', task.status} end\n"
            "if STATE_OF_KEY[task.status] then return {'terminal', task.status} end\n")


DEFECT = Defect(
    "answers_a_second_cancel_as_the_first",
    "Answers a cancel of a task that was cancelled before as if it had done it just now.",
    caught_by=("cancelled_stays_cancelled",), also=("commands_as_promised",),
    put_in=_put_in)

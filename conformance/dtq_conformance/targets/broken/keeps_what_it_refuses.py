"""Accepts a task and answers that its queue is full."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "  if depth >= call.max_depth then return",
            "  if depth >= call.max_depth then accept(task, 'queued') return")


DEFECT = Defect(
    "keeps_what_it_refuses",
    "Accepts a task and answers that its queue is full.",
    caught_by=("depth_is_exact",), also=("nothing_invented", "one_terminal_state"),
    put_in=_put_in)

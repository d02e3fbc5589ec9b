"""Writes the entry of a new task to the server's memory alone: a restart leaves none."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "    add('entry_id', enqueue(",
            "    redis.set_repl(redis.REPL_NONE)\n    add('entry_id', enqueue(")
    rewrite("submit", "    publish('TASK_QUEUED', task)\n  else",
            "    redis.set_repl(redis.REPL_ALL)\n    publish('TASK_QUEUED', task)\n  else")


DEFECT = Defect(
    "keeps_entries_out_of_the_file",
    "Writes the entry of a new task to the server's memory alone: a restart leaves none.",
    caught_by=("nothing_lost", "one_way_leads_to_each_unfinished_task",
               "what_was_answered_survives"),
    also=("kept_through_broker_trouble", "nothing_left_behind"),
    put_in=_put_in)

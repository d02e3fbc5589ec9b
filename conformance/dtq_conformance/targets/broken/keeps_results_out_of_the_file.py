"""Writes results to the server's memory alone: they are in no file and in no replica."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "    redis.call('SET', call.result_prefix .. task.task_id, outcome.result,\n"
            "               'EX', call.result_retention_s)\n",
            "    redis.set_repl(redis.REPL_NONE)\n"
            "    redis.call('SET', call.result_prefix .. task.task_id, outcome.result,\n"
            "               'EX', call.result_retention_s)\n"
            "    redis.set_repl(redis.REPL_ALL)\n")


DEFECT = Defect(
    "keeps_results_out_of_the_file",
    "Writes results to the server's memory alone: they are in no file and in no replica.",
    caught_by=("what_was_answered_survives", "one_way_leads_to_each_unfinished_task"),
    also=("one_terminal_state",),
    put_in=_put_in)

"""Counts the time in which the server was away as idle time, as soon as it is back."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "not call.reap or server_is_young()", "not call.reap")


DEFECT = Defect(
    "ignores_the_servers_youth",
    "Counts the time in which the server was away as idle time, as soon as it is back.",
    caught_by=("kept_through_broker_trouble",),
    also=("attempts_accounted_for", "dead_letters_complete", "duplicates_justified",
          "nothing_lost", "one_holder_at_a_time", "one_terminal_state"),
    put_in=_put_in)

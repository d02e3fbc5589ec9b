"""Takes a running task whose entry it reads as new for one that has lost its holder."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take",
            "    redis.call('XCLAIM', KEYS[level], GROUP, holder, 0, entry_id, 'JUSTID')\n",
            "    do return redeliver(level, entry_id) end\n")


DEFECT = Defect(
    "starts_what_another_runs",
    "Takes a running task whose entry it reads as new for one that has lost its holder.",
    caught_by=("kept_through_broker_trouble", "duplicates_justified", "one_holder_at_a_time"),
    also=("attempts_accounted_for", "dead_letters_complete", "nothing_lost", "one_terminal_state"),
    put_in=_put_in)

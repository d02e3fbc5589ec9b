"""A requeue that needs no dead letter."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("requeue", "if task.status ~= 'dead_lettered' or not letter then",
            "if task.status ~= 'dead_lettered' then")
    rewrite("requeue", "redis.call('XDEL', KEYS[2], task.letter_id)",
            "redis.call('XDEL', KEYS[2], task.letter_id or '0-1')")


DEFECT = Defect(
    "requeues_what_was_discarded",
    "Requeues a task whose dead letter was discarded.",
    caught_by=("requeue_begins_anew",), also=("dead_letters_complete", "nothing_left_behind"),
    put_in=_put_in)

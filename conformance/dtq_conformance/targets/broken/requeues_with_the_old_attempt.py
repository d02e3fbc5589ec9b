"""A requeue that counts on where the first life ended."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("requeue", "task.attempt = 1\n", "")
    rewrite("requeue", "'status', 'queued', 'attempt', 1, 'entry_id'",
            "'status', 'queued', 'entry_id'")


DEFECT = Defect(
    "requeues_with_the_old_attempt",
    "Requeues a task with the attempt number of its first life.",
    caught_by=("requeue_begins_anew",),
    also=("attempts_accounted_for", "attempts_bounded", "dead_letters_complete"),
    put_in=_put_in)

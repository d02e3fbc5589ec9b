"""Does not raise the attempt number when a lease has ended."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "task.losses, task.attempt = task.losses + 1, task.attempt + 1",
            "task.losses = task.losses + 1")


DEFECT = Defect(
    "does_not_count_redelivery",
    "Does not raise the attempt number when a lease has ended.",
    caught_by=("attempts_bounded",),
    also=("dead_letters_complete", "drained_on_stop", "nothing_lost", "one_event_per_transition",
          "one_holder_at_a_time", "one_terminal_state"),
    put_in=_put_in)

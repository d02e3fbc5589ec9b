"""Takes entries when a twentieth of their lease has passed."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "'IDLE', call.lease_ms, from", "'IDLE', math.floor(call.lease_ms / 20), from")


DEFECT = Defect(
    "takes_live_leases",
    "Takes entries when a twentieth of their lease has passed.",
    caught_by=("one_holder_at_a_time",),
    also=("attempts_accounted_for", "attempts_bounded", "dead_letters_complete", "drained_on_stop",
          "duplicates_justified", "kept_through_broker_trouble", "nothing_lost",
          "one_event_per_transition", "one_terminal_state", "workers_as_promised"),
    put_in=_put_in)

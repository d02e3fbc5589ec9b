"""Never renews a lease, so that a long handler loses its task."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("renew", "    redis.call('XCLAIM', KEYS[level], GROUP, call.consumer, 0, entry_id, "
            "'JUSTID')\n", "")


DEFECT = Defect(
    "never_renews",
    "Never renews a lease, so that a long handler loses its task.",
    caught_by=("duplicates_justified",),
    also=("attempts_accounted_for", "dead_letters_complete", "drained_on_stop",
          "kept_through_broker_trouble", "one_holder_at_a_time", "one_terminal_state",
          "workers_as_promised"),
    put_in=_put_in)

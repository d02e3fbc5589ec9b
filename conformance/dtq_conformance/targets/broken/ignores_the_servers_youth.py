"""Counts the time in which the server was away as idle time, and is the first to ask when it is
back."""

from __future__ import annotations

from dtq_reference.transport import Patience
from redis.exceptions import RedisError

from dtq_conformance.targets.defect import Defect, rewrite

SOON_S = 0.005
"""How long it waits before it asks again: that holds the window open, in which holders renew."""


def _put_in() -> None:
    rewrite("take", "not is_mine and not server_is_young()", "not is_mine")
    pause_s = Patience.pause_s

    def hardly(self: Patience, error: RedisError) -> float:
        return min(SOON_S, pause_s(self, error))

    Patience.pause_s = hardly  # type: ignore[method-assign]


DEFECT = Defect(
    "ignores_the_servers_youth",
    "Counts the time in which the server was away as idle time, and is the first to ask when it "
    "is back.",
    caught_by=("kept_through_broker_trouble",),
    also=("attempts_accounted_for", "dead_letters_complete", "duplicates_justified",
          "nothing_lost", "one_holder_at_a_time", "one_terminal_state"),
    put_in=_put_in)

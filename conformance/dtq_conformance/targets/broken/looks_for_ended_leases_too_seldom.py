"""Looks for ended leases and released tasks every five seconds."""

from __future__ import annotations

from types import SimpleNamespace

from dtq_reference import poller

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "if call.reap or pending_of(KEYS[level], RELEASED, 1)[1] then",
            "if call.reap then")
    vars(poller)["random"] = SimpleNamespace(uniform=lambda least, most: 25.0)


DEFECT = Defect(
    "looks_for_ended_leases_too_seldom",
    "Looks for ended leases and released tasks every five seconds.",
    caught_by=("workers_as_promised",),
    also=("attempts_accounted_for", "drained_on_stop", "no_start_after_ttl", "nothing_lost",
          "strict_priority"),
    put_in=_put_in)

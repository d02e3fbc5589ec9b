"""Lets the server refuse to renew leases while it is out of memory."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("renew", "#!lua flags=allow-oom\n", "#!lua\n")


DEFECT = Defect(
    "renews_nothing_without_memory",
    "Lets the server refuse to renew leases while it is out of memory.",
    caught_by=("duplicates_justified", "one_holder_at_a_time"), also=(),
    put_in=_put_in)

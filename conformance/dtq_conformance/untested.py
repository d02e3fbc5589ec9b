"""Clauses by which no trial judges a target yet, each with the reason: the one list of them.

A clause leaves this list with the case or scenario that tests it; a test compares the list with
what the trials name and the checkers cover. A run counts what its target claims of these as
untested: neither held nor violated nor unknown, since nothing was learned about the target.
"""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {
    "No trial stops an engine within this step yet; DLV-12 watches what would follow.":
        ("DLV-14", "DLV-15", "DLV-16", "DLV-17", "DLV-18", "DLV-19", "DLV-20"),
    "The audit of the key space reads names, types and expiries at rest, not this yet.":
        ("KEY-12",),
    "No trial runs a cluster yet.":
        ("KEY-10",),
    "No trial brings this about yet; other clauses of delivery judge what would follow.":
        ("DLV-22", "DLV-24", "DLV-34", "DLV-39"),
    "The cases of attempts do not bring about this outcome yet.":
        ("RETRY-07",),
    "No trial shifts a worker's clock yet: how that is done depends on its language.":
        ("SCHED-05",),
    "The cases of idempotency do not bring this about yet.":
        ("IDEM-11",),
    "No trial crashes a loop of a worker yet: which it has is its own affair.":
        ("WORK-03",),
    "A worker need not have a pool of processes (WORK-10), and no trial asks for one yet.":
        ("WORK-11", "WORK-12"),
    "No scenario brings the broker into this trouble yet.":
        ("WORK-20",),
    "It needs a module with a handler in the target's own language.":
        ("CLI-06",),
    "The harness relies on it in every run, and makes no verdict of it.":
        ("DEMO-04",),
    "The steps of the probe do not show this yet.":
        ("HAND-01", "HAND-06"),
    "No scenario promotes a replica yet.":
        ("DUR-06", "DUR-07"),
}
"""Reasons, each with the clauses that it stands for."""

UNTESTED: dict[str, str] = {clause: reason for reason, clauses in REASONS.items()
                            for clause in clauses}
"""The reason by clause."""

"""The states of a task and the ways between them, as data; checkers read observations with it.

From the contract's section *States*. A redelivery keeps a task `running`, and a task may be
observed twice in one state, so staying is always possible.
"""

from __future__ import annotations

TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"queued", "cancelled", "expired"}),
    "queued": frozenset({"running", "cancelled", "expired", "dead_lettered", "failed"}),
    "running": frozenset({"succeeded", "retrying", "failed", "dead_lettered", "cancelled",
                          "queued", "expired"}),
    "retrying": frozenset({"queued", "cancelled", "expired"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "dead_lettered": frozenset(),
    "cancelled": frozenset(),
    "expired": frozenset(),
}


def reachable(status: str) -> frozenset[str]:
    """Every state that an observation of `status` can be followed by, `status` itself included."""
    found = {status}
    new = [status]
    while new:
        for following in TRANSITIONS.get(new.pop(), frozenset()) - found:
            found.add(following)
            new.append(following)
    return frozenset(found)

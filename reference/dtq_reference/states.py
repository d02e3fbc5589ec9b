"""The life of a task as data: which state may follow which. The scripts make these moves."""

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

TERMINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)

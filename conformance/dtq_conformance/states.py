"""The states of a task and the ways between them, as data; checkers read observations with it.

From the contract's section *Domain model*, whose diagram is drawn from here. A redelivery keeps a
task `running`, and a task may be observed twice in one state, so staying is always possible.
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

BEGINNINGS = ("pending", "queued")
"""The states in which a task is accepted: for later, or for now."""

REQUEUE = ("dead_lettered", "queued")
"""The one way out of a terminal state: an administrator requeues the dead letter."""


def diagram() -> str:
    """The transitions as a diagram in Mermaid's language, as it stands in the contract."""
    lines = ["stateDiagram-v2", *(f"    [*] --> {state}" for state in BEGINNINGS)]
    for state, following in TRANSITIONS.items():
        lines += [f"    {state} --> {after}" for after in TRANSITIONS if after in following]
    lines += [f"    {state} --> [*]" for state, following in TRANSITIONS.items() if not following]
    return "\n".join([*lines, f"    {' --> '.join(REQUEUE)} : requeue by an administrator"])


def reachable(status: str) -> frozenset[str]:
    """Every state that an observation of `status` can be followed by, `status` itself included."""
    found = {status}
    new = [status]
    while new:
        for following in TRANSITIONS.get(new.pop(), frozenset()) - found:
            found.add(following)
            new.append(following)
    return frozenset(found)

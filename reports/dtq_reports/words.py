"""Numbers and words as the reports print them."""

from __future__ import annotations

from collections.abc import Sequence

NARROW_SPACE = "\u202f"


def number(value: int) -> str:
    """2431 as 2 431, the space being a narrow one that does not break."""
    return f"{value:,}".replace(",", NARROW_SPACE)


def count(value: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 task, 2 431 tasks."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def was(value: int) -> str:
    """The verb for a counted subject."""
    return "was" if value == 1 else "were"


def listed(items: Sequence[str], *, at_most: int = 6) -> str:
    """a, b and c; what is left out is counted."""
    if len(items) > at_most:
        return f"{', '.join(items[:at_most])} and {number(len(items) - at_most)} more"
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def short(task_id: str) -> str:
    """The first eight digits of a task's id, for places where the whole does not fit."""
    return task_id[:8]

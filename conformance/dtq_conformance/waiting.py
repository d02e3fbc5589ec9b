"""Wait for a condition, with a limit and a reason; nothing in this house sleeps to be safe."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class WaitedTooLong(Exception):
    """A condition did not come true within its limit."""


def wait_for(condition: Callable[[], T | None], *, reason: str, limit_s: float,
             every_s: float = 0.005) -> T:
    """Return the first true value of `condition`; raise `WaitedTooLong` after `limit_s`.

    `reason` completes the sentence "waited N s for …".
    """
    deadline = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise WaitedTooLong(f"waited {limit_s:g} s for {reason}")
        time.sleep(every_s)


def let_pass(span_ms: int) -> None:
    """Let time pass in which something must not happen, or that the trial itself is about."""
    time.sleep(span_ms / 1000)

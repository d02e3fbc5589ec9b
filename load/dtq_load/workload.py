"""A workload: what Locust's users submit, to how many workers, and what befalls these meanwhile.

Stands at the head of this room's flow. The harness and Locust's process both read it, so it and
the workloads import nothing of Locust.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dtq_conformance.bench import Bench
from dtq_conformance.history import History, Mark
from dtq_conformance.target import Submission


class Load(Protocol):
    """The load as a fault sees it."""

    tasks: int | None

    def is_over(self) -> bool:
        """Whether Locust has ended its run."""
        ...


@dataclass(frozen=True)
class Workload:
    """One workload. `tasks` is their number in all, None for as many as `seconds` allow.

    Each user submits a task every `pause_s`, or one after the other if that is 0. `submission`
    makes the task of a number from the run's random source; it is called in that order. `fire`
    does the workload's faults while the load runs, and `marks` read the proof that they bit.
    """

    name: str
    story: str
    clauses: tuple[str, ...]
    submission: Callable[[random.Random, int], Submission]
    users: int
    workers: int
    concurrency: int
    tasks: int | None = None
    seconds: int | None = None
    pause_s: float = 0.0
    fire: Callable[[Bench, Load], None] | None = None
    marks: tuple[Callable[[History], Mark], ...] = ()

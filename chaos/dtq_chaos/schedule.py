"""A fault schedule: which faults strike, in which order, each keyed to a logical event.

It is made in advance from a seed, saved beside the history, and can be replayed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

Event = Literal["at_once", "start", "end", "in_hand", "exit", "forgotten", "elapsed"]


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A logical event: the `count`-th start or end (of tasks with `label`, if given), or
    `count` tasks in hand of `worker` as the broker shows it, or the exit of `worker`, or the
    moment at which the broker knows nothing of `worker` any more, or `count` ms of a storm."""

    event: Event
    count: int = 1
    label: str | None = None
    worker: str | None = None

    def __str__(self) -> str:
        about = self.label or self.worker
        return f"{self.event} {self.count}" + (f" of {about}" if about else "")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault: when it begins and, if it is not over at once, when it ends (None: when the
    scenario is healed). `parameters` are those that the fault's module names."""

    fault: str
    when: When
    until: When | None = None
    parameters: dict[str, Any] = {}


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something asked of the target `at_ms` of a storm: an ability of the bench by its name, of a
    task or of the queue. `fields` are those of a submission; a pause has `lasts_ms`."""

    at_ms: int
    ask: Literal["submit", "look", "cancel", "requeue", "discard", "pause"]
    task_id: str | None = None
    fields: dict[str, Any] = {}


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All faults of a run, and what is needed to run it again; `asks` are a storm's."""

    scenario: str
    target: str
    broker: str
    seed: int
    entries: list[Entry]
    asks: list[Ask] = []


class ScheduleError(Exception):
    """A file that is not a schedule."""


def load(path: Path) -> Schedule:
    """Read a saved schedule. Raises `ScheduleError`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Schedule)
    except OSError as error:
        raise ScheduleError(f"{path} cannot be read: {error.strerror}. A run of dtq-chaos has a "
                            "schedule.json in its folder.") from error
    except msgspec.MsgspecError as error:
        raise ScheduleError(f"{path} is not a schedule: {error}.") from error

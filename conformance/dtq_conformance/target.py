"""The target: how the harness works one implementation of the contract.

An implementation is judged through this protocol and nothing else. It tells how its workers are
started (as processes, by a command line), and how a task is submitted and looked at; what else it
can do is an optional ability, asked for with `isinstance`. Everything that it answers passes
`faults_in`, which reports all that is wrong with an answer at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from dtq_conformance.history import Timing

STATUSES = ("pending", "queued", "running", "succeeded", "retrying", "failed", "dead_lettered",
            "cancelled", "expired")
TERMINAL = frozenset({"succeeded", "failed", "dead_lettered", "cancelled", "expired"})

CLAIMS = ("delivery", "submission", "status", "retry", "schedule", "priority", "workers",
          "idempotency", "cancel", "ttl", "dlq", "pause", "backpressure", "shutdown",
          "redis-schema", "http", "cli", "events", "metrics", "security", "broker-trouble",
          "handlers", "configuration", "durability:worker-loss", "durability:restart",
          "durability:power-loss", "durability:failover")
"""What a target can declare; the contract's section *Claims* says what each means. A clause of a
claim that the target does not make is not judged."""


@dataclass(frozen=True)
class Site:
    """Where a target is to run: the broker, its own key prefix, the witness file, the timing.

    `settings` are DTQ_ variables of the contract's section *Configuration* that this trial sets
    beside them, for every process and client of the target.
    """

    broker_url: str
    prefix: str
    witness: Path
    timing: Timing
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command line and the environment variables that it needs beside the inherited ones,
    and beside DTQ_WITNESS and DTQ_WORKER_ID, which every worker is given."""

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A task as the harness asks for it. `payload` is probe_task's list of steps, with a label."""

    task_id: str
    payload: dict[str, Any]
    task_type: str = "probe_task"
    priority: int = 5
    max_attempts: int = 5
    timeout_ms: int = 30_000
    delay_ms: int = 0
    idempotency_key: str | None = None
    ttl_ms: int = 0


class Accepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a target answers to a submission that it did not refuse: `duplicate` when its key is
    that of the finished task `task_id`, so that nothing new was accepted."""

    task_id: str
    duplicate: bool = False


class TaskView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as the target reports it. `result` is the value that the handler returned.

    What a target keeps no record of it leaves out; then nothing is judged by it.
    """

    task_id: str
    status: str
    attempt: int | None = None
    max_attempts: int | None = None
    priority: int | None = None
    task_type: str | None = None
    result: Any = None
    error_class: str | None = None


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter as the target reports it."""

    task_id: str
    attempts_made: int
    error_class: str


class Target(Protocol):
    """What every target can do. Calls raise `operation.Refused` when they surely did nothing."""

    def worker(self, worker_id: str, concurrency: int, *, broker_url: str | None = None) -> Command:
        """The command that runs one worker in the foreground. Given `broker_url`, the worker
        reaches the broker through that address (a proxy's) instead of the site's."""
        ...

    def submit(self, submission: Submission) -> Accepted | None:
        """Submit a task and return when it is accepted. A target without idempotency keys need
        not say more than that."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class ShowsTasks(Protocol):
    """Without it, the witness file alone tells what became of a task."""

    def look(self, task_id: str) -> TaskView | None:
        """The task as it stands; None if it is not known."""
        ...


@runtime_checkable
class ListsDeadLetters(Protocol):
    def dead_letters(self) -> list[DeadLetter]:
        """All dead letters that exist."""
        ...


@runtime_checkable
class Cancels(Protocol):
    def cancel(self, task_id: str) -> str:
        """Cancel a task: `cancelled` if it waited, `requested` if it runs."""
        ...


@runtime_checkable
class Pauses(Protocol):
    def pause(self) -> None:
        """Let nothing be taken from the queue any more."""
        ...

    def resume(self) -> None:
        """Let it be taken again."""
        ...


@runtime_checkable
class Purges(Protocol):
    def purge(self) -> int:
        """Cancel all that waits in the queue; returns how many tasks that were."""
        ...


@runtime_checkable
class AdministersDeadLetters(Protocol):
    def requeue(self, task_id: str) -> None:
        """Give a dead-lettered task a new life."""
        ...

    def discard(self, task_id: str) -> None:
        """Throw the dead letter of a task away."""
        ...

    def purge_dead_letters(self) -> int:
        """Throw all dead letters away; returns how many there were."""
        ...


@runtime_checkable
class ShowsReadiness(Protocol):
    def is_ready(self, worker_id: str) -> bool:
        """Whether this worker has started up: from then on it can be asked to stop in order."""
        ...


@runtime_checkable
class ServesApi(Protocol):
    def api(self, port: int) -> Command:
        """The command that serves the contract's HTTP API in the foreground, at 127.0.0.1 and this
        port, until it is sent SIGTERM."""
        ...


@runtime_checkable
class HasCommand(Protocol):
    def command(self, *arguments: str) -> Command:
        """The contract's command `dtq` with these arguments, as one would type it."""
        ...


class TargetKind(Protocol):
    """What `load_target` returns: one implementation, before it runs anywhere."""

    @property
    def name(self) -> str: ...

    @property
    def claims(self) -> frozenset[str]: ...

    @property
    def recovery_ms(self) -> int: ...

    def open(self, site: Site) -> Target:
        """Make the target ready to be worked at this site."""
        ...


@runtime_checkable
class MayBeForked(Protocol):
    """A kind of target whose processes need not be started by their command lines each time."""

    @property
    def preload(self) -> Sequence[str]:
        """Modules that its processes import. Where many trials run, what is `python -m MODULE`
        of this Python may be forked from a process that has imported them."""
        ...


def preloaded_for(kind: TargetKind) -> Sequence[str]:
    """What may be imported before this target's processes are forked; empty if they may not be."""
    return kind.preload if isinstance(kind, MayBeForked) else ()


class UnknownTarget(Exception):
    """No target has this name, or what stands there is not a target."""


def load_target(name: str) -> TargetKind:
    """Find a target: `reference`, `broken:NAME`, or `module:attribute` for one of your own."""
    from dtq_conformance.targets import TARGETS, broken

    if name in TARGETS:
        return TARGETS[name]
    room, _, attribute = name.partition(":")
    if room == "broken":
        return broken.load(attribute)
    if not attribute:
        raise UnknownTarget(f"There is no target {name!r}. Known are {', '.join(TARGETS)}, "
                            f"broken:NAME, and module:attribute for one of your own.")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # an installed command does not look into the current folder
    try:
        kind = getattr(importlib.import_module(room), attribute)
    except Exception as error:  # whatever somebody else's module does when it is imported
        raise UnknownTarget(f"The target {name!r} cannot be loaded: "
                            f"{type(error).__name__}: {error}.") from error
    if problems := problems_of(kind):
        raise UnknownTarget(f"{name!r} is not a target: {'; '.join(problems)}.")
    return kind  # type: ignore[no-any-return]


def problems_of(kind: object) -> list[str]:
    """Everything that keeps this from being a `TargetKind`, as half sentences."""
    problems = [f"it has no {need}" for need in ("name", "claims", "recovery_ms", "open")
                if not hasattr(kind, need)]
    claims: object = getattr(kind, "claims", frozenset())
    if not isinstance(claims, frozenset | set):
        problems.append(f"its claims are {claims!r}, not a set")
    else:
        problems += [f"it claims {claim!r}, which nobody knows; known are {', '.join(CLAIMS)}"
                     for claim in sorted(claims - set(CLAIMS), key=str)]
    recovery_ms = getattr(kind, "recovery_ms", 1)
    if not isinstance(recovery_ms, int) or recovery_ms < 1:
        problems.append(f"its recovery_ms is {recovery_ms!r}, not a number from 1")
    preload: object = getattr(kind, "preload", ())
    if isinstance(preload, str) or not isinstance(preload, Sequence):
        problems.append(f"its preload is {preload!r}, not a list of modules")
    if not callable(getattr(kind, "open", callable)):
        problems.append("its open cannot be called")
    return problems


def lacks_of(target: object) -> list[str]:
    """What an opened target lacks of `Target`, by name."""
    return [f"{name}()" for name in ("worker", "submit", "close")
            if not callable(getattr(target, name, None))]


def faults_in(view: object, *, task_id: str) -> list[str]:
    """Everything that is wrong with the answer to `look`, as sentences; empty if nothing is."""
    if view is None:
        return []
    if not isinstance(view, TaskView):
        return [f"look answered a {type(view).__name__}, not a TaskView"]
    faults = []
    if view.task_id != task_id:
        faults.append(f"asked for task {task_id}, answered for {view.task_id}")
    if view.attempt is not None and (not isinstance(view.attempt, int) or view.attempt < 1):
        faults.append(f"attempt is {view.attempt!r}, not a number from 1")
    if view.max_attempts is not None and (
            not isinstance(view.max_attempts, int) or view.max_attempts < 1):
        faults.append(f"max_attempts is {view.max_attempts!r}, not a number from 1")
    if view.priority is not None and view.priority not in range(10):
        faults.append(f"priority is {view.priority!r}, not 0 to 9")
    if view.status in ("failed", "dead_lettered") and not view.error_class:
        faults.append(f"status {view.status} without an error class")
    return faults

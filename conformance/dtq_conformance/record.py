"""The lines of a history: what happened outside the target, and which run it was.

Comes in: what the lab, the handlers, the pacemaker and the faults saw. Goes out: lines that
`history` writes and reads, beside the operations. Times are CLOCK_MONOTONIC nanoseconds.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Effect = Literal["killed", "terminated", "stopped", "cut", "delayed", "reply_lost",
                 "broker_away", "broker_restarted", "out_of_memory", "group_dropped",
                 "scripts_flushed", "replaced",
                 "forged", "deleted", "power_lost"]


class Timing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The intervals that the target ran with, in milliseconds; `jitter` is a share of a delay,
    `key_ms` how long an idempotency key outlives its task."""

    lease_ms: int
    heartbeat_ms: int
    reap_ms: int
    schedule_ms: int
    drain_ms: int
    recovery_ms: int
    base_delay_ms: int
    max_delay_ms: int
    jitter: float
    key_ms: int = 86_400_000


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
             tag_field="kind", tag="header"):
    """Which run this was. `clauses` are those that the trial sets out to test.

    `expects` is "violated" where the harness itself does the harm, so that the judge is tested.
    `settings` are the DTQ_ variables that the run had beside those of its timing.
    """

    format: int
    run_id: str
    room: str
    trial: str
    target: str
    claims: list[str]
    broker: str
    seed: int
    began_at: str
    began_ns: int
    with_faults: bool
    timing: Timing
    clauses: list[str]
    versions: dict[str, str]
    repeat: str
    expects: Literal["holds", "violated"] = "holds"
    settings: dict[str, str] = {}


class Witness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
              tag_field="kind", tag="witness"):
    """A line that a handler wrote, outside the queue, when it started or ended."""

    at_ns: int
    event: Literal["start", "end"]
    task_id: str
    attempt: int
    worker_id: str
    pid: int
    label: str = ""
    outcome: Literal["ok", "failed", "cancelled"] | None = None


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
              tag_field="kind", tag="process"):
    """A process of the lab started or ended. `asked` says what the lab last sent it, if any.

    `name` is the lab's name ("worker-1"), unique in a run; `signal` the one it died of;
    `concurrency` stands in the start of a worker.
    """

    at_ns: int
    event: Literal["start", "exit"]
    role: str
    name: str
    pid: int
    exit_code: int | None = None
    signal: int | None = None
    asked: str = ""
    concurrency: int | None = None


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            tag_field="kind", tag="fault"):
    """A fault began, bit (its effect was seen from outside) or ended.

    `number` is its place in the schedule; `effect` is what it does to its victim, which is all
    that checkers look at; `pids` are the worker processes that it befalls.
    """

    at_ns: int
    fault: str
    number: int
    phase: Literal["begin", "bit", "end"]
    effect: Effect
    pids: list[int] = []
    detail: dict[str, Any] = {}


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
           tag_field="kind", tag="mark"):
    """Proof, read outside the engine, that a fault bit as the scenario meant it to."""

    name: str
    held: bool
    sentence: str
    evidence: dict[str, Any] = {}


class Stall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            tag_field="kind", tag="stall"):
    """The machine gave the pacemaker no time between these two instants."""

    from_ns: int
    to_ns: int


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
           tag_field="kind", tag="pace"):
    """What the pacemaker saw over the whole run."""

    beats: int
    first_ns: int
    last_ns: int
    longest_gap_ms: float


class Footer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
             tag_field="kind", tag="footer"):
    """The number of lines above this one, the header included, and their SHA-256."""

    lines: int
    sha256: str

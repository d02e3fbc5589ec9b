"""Small histories, built record by record, for the tests of what reads them.

Each helper makes one record, or the list of those that belong together. Times are milliseconds
since the beginning of the run; workers are numbers, and the pid of worker n is 100 + n.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from dtq_conformance.checker import Check
from dtq_conformance.history import (
    FORMAT,
    Effect,
    Fault,
    Header,
    History,
    Mark,
    Process,
    Record,
    Stall,
    Timing,
    Witness,
)
from dtq_conformance.operation import Operation, Outcome
from dtq_conformance.target import Submission

BEGAN_NS = 7_000_000_000_000
TIMING = Timing(lease_ms=1000, heartbeat_ms=200, reap_ms=200, schedule_ms=50, drain_ms=3000,
                recovery_ms=5000, base_delay_ms=100, max_delay_ms=800, jitter=0.2)
LATE = 60_000
"""When everything is over and looked at, long after any recovery time."""

T, U, V = "a" * 32, "b" * 32, "c" * 32
"""Ids of tasks."""

Part = Record | Iterable[Any]


def ns(at_ms: int) -> int:
    return BEGAN_NS + at_ms * 1_000_000


def pid(worker: int) -> int:
    return 100 + worker


def name(worker: int) -> str:
    return f"worker-{worker}"


def submit(task_id: str = T, at: int = 10, outcome: Outcome = "ok", *,
           steps: list[dict[str, Any]] | None = None, answer: dict[str, Any] | None = None,
           label: str = "", **fields: Any) -> Operation:
    payload = {"steps": steps or [], "label": label}
    asked = Submission(task_id=task_id, payload=payload, **fields)
    return Operation(name="submit", asked_ns=ns(at) - 1000, answered_ns=ns(at), outcome=outcome,
                     task_id=task_id, request=msgspec.to_builtins(asked), answer=answer or {})


def look(task_id: str = T, status: str = "succeeded", *, at: int = LATE, attempt: int = 1,
         by: int | None = 1, result: Any = None, **fields: Any) -> Operation:
    """A task that was seen; one that succeeded shows the result of worker `by`."""
    if result is None and status == "succeeded" and by is not None:
        result = {"attempt": attempt, "worker_id": name(by), "pid": pid(by)}
    answer = {"task_id": task_id, "status": status, "attempt": attempt, "max_attempts": 5,
              "priority": 5, "task_type": "probe_task", "result": result, "error_class": None,
              **fields}
    return Operation(name="look", asked_ns=ns(at) - 1000, answered_ns=ns(at), outcome="ok",
                     task_id=task_id, answer=answer)


def asked(what: str, task_id: str | None = None, *, at: int, outcome: Outcome = "ok",
          **answer: Any) -> Operation:
    """A demand of another kind (cancel, pause, requeue, ...) and its answer."""
    return Operation(name=what, asked_ns=ns(at) - 1000, answered_ns=ns(at), outcome=outcome,
                     task_id=task_id, answer=answer)


def absent(task_id: str = T, at: int = LATE) -> Operation:
    return Operation(name="look", asked_ns=ns(at) - 1000, answered_ns=ns(at), outcome="ok",
                     task_id=task_id)


def dead(task_id: str = T, error_class: str = "PermanentError", **fields: Any) -> Operation:
    """A task that was seen dead-lettered."""
    return look(task_id, "dead_lettered", error_class=error_class, **fields)


def letter(task_id: str = T, attempts_made: int = 1,
           error_class: str = "PermanentError") -> dict[str, Any]:
    return {"task_id": task_id, "attempts_made": attempts_made, "error_class": error_class}


def letters(*found: dict[str, Any], at: int = LATE + 10) -> Operation:
    return Operation(name="dead_letters", asked_ns=ns(at), answered_ns=ns(at), outcome="ok",
                     answer={"letters": list(found)})


def start(at: int, task_id: str = T, *, attempt: int = 1, by: int = 1, label: str = "") -> Witness:
    return Witness(at_ns=ns(at), event="start", task_id=task_id, attempt=attempt,
                   worker_id=name(by), pid=pid(by), label=label)


def end(at: int, task_id: str = T, outcome: str = "ok", *, attempt: int = 1,
        by: int = 1) -> Witness:
    line = {"kind": "witness", "at_ns": ns(at), "event": "end", "task_id": task_id,
            "attempt": attempt, "worker_id": name(by), "pid": pid(by), "outcome": outcome}
    return msgspec.convert(line, Witness)


def ran(from_ms: int, to_ms: int, task_id: str = T, outcome: str = "ok", *, attempt: int = 1,
        by: int = 1) -> list[Record]:
    """A whole execution."""
    return [start(from_ms, task_id, attempt=attempt, by=by),
            end(to_ms, task_id, outcome, attempt=attempt, by=by)]


def born(*workers: int, at: int = 1, concurrency: int | None = None) -> list[Record]:
    return [Process(at_ns=ns(at), event="start", role="worker", name=name(worker),
                    pid=pid(worker), concurrency=concurrency) for worker in workers]


def gone(worker: int, at: int, *, signal: int | None = None, code: int | None = None,
         asked: str = "") -> Process:
    return Process(at_ns=ns(at), event="exit", role="worker", name=name(worker), pid=pid(worker),
                   signal=signal, exit_code=code, asked=asked)


def killed(worker: int, at: int) -> Process:
    return gone(worker, at, signal=9, asked="kill")


def fault(effect: Effect, from_ms: int, to_ms: int | None = None, *, worker: int | None = None,
          number: int = 0, **detail: Any) -> list[Record]:
    """A fault that begins, bites at once and, unless `to_ms` is None, ends."""
    pids = [] if worker is None else [pid(worker)]
    phases = [("begin", from_ms), ("bit", from_ms)] + ([] if to_ms is None else [("end", to_ms)])
    return [msgspec.convert({"kind": "fault", "at_ns": ns(at), "fault": effect, "number": number,
                             "phase": phase, "effect": effect, "pids": pids, "detail": detail},
                            Fault) for phase, at in phases]


def terminated(worker: int, at: int, *, in_hand: list[str], unstarted: list[str] | None = None,
               number: int = 0) -> list[Record]:
    """A SIGTERM, and what the broker showed at that instant."""
    return fault("terminated", at, at, worker=worker, number=number, in_hand=in_hand,
                 unstarted=unstarted or [])


def stall(from_ms: int, to_ms: int) -> Stall:
    return Stall(from_ns=ns(from_ms), to_ns=ns(to_ms))


def mark(held: bool = True) -> Mark:
    return Mark(name="it_bit", held=held, sentence="The fault was seen, or not.")


def flat(parts: Iterable[Part]) -> tuple[Record, ...]:
    found: list[Record] = []
    for part in parts:
        found.extend([part] if isinstance(part, Record) else flat(part))
    return tuple(found)


def header(**fields: Any) -> Header:
    given: dict[str, Any] = {
        "format": FORMAT, "run_id": "r1", "room": "chaos", "trial": "story", "target": "reference",
        "claims": ["delivery", "submission", "status", "retry", "dlq", "shutdown"],
        "broker": "valkey 9.1.0 (embedded)",
        "seed": 7, "began_at": "2026-03-01T12:00:00+00:00", "began_ns": BEGAN_NS,
        "with_faults": True, "timing": TIMING, "clauses": [], "versions": {},
        "repeat": "dtq-chaos replay r1"}
    return Header(**(given | fields))


def history(*parts: Part, **fields: Any) -> History:
    return History(header(**fields), flat(parts))


def says(check: Check, *parts: Part) -> dict[str, str]:
    """A checker's whole verdict on a history: `status judged` of each clause it could judge.

    Clauses of which it says that nothing could be judged are left out.
    """
    verdicts = check(history(*parts))
    return {verdict.clause: f"{verdict.status} {verdict.judged}" for verdict in verdicts
            if verdict.judged or verdict.findings or verdict.status != "unknown"}


def accuses(check: Check, clause: str, *parts: Part) -> str:
    """The first sentence that a checker says about a clause."""
    return next(verdict.sentence for verdict in check(history(*parts))
                if verdict.clause == clause)

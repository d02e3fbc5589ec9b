"""A producer: a process of its own that submits tasks, and can be killed in the middle of it.

`python -m dtq_chaos.producer SPEC` reads what to submit, and writes one line for what it asks and
one for what it is told, each in one write. The bench's side reads these lines, also while the
producer runs, and `adopt` makes operations of them: what was never answered is unknown.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from dtq_conformance.bench import Bench
from dtq_conformance.history import Timing
from dtq_conformance.lab import LabProcess
from dtq_conformance.operation import Operation, Outcome, answer_of, outcome_of
from dtq_conformance.target import Site, Submission, load_target
from dtq_conformance.waiting import wait_for

NAME = "producer-1"


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a producer is told: the target, where it is, and one submission each `every_ms`."""

    target: str
    broker_url: str
    prefix: str
    witness: str
    timing: Timing
    every_ms: int
    submissions: list[Submission]
    told: str


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a producer asked, or what it was told; times are CLOCK_MONOTONIC."""

    at_ns: int
    task_id: str
    event: str
    outcome: Outcome = "unknown"
    answer: dict[str, Any] = {}


def start(bench: Bench, target: str, submissions: list[Submission], *, every_ms: int,
          broker_url: str) -> None:
    """Start a producer in the lab; it need not have submitted anything when this returns."""
    spec = Spec(target=target, broker_url=broker_url, prefix=bench.lab.broker.prefix,
                witness=str(bench.lab.witness), timing=bench.timing, every_ms=every_ms,
                submissions=submissions, told=str(_told(bench)))
    _spec(bench).write_bytes(msgspec.json.encode(spec))
    bench.lab.start(NAME, [sys.executable, "-m", "dtq_chaos.producer", str(_spec(bench))],
                    role="producer")


def process_of(bench: Bench) -> LabProcess:
    """The producer's process."""
    return next(process for process in bench.lab.processes() if process.name == NAME)


def answered(bench: Bench) -> list[str]:
    """Ids of the tasks of which the producer was told something."""
    return [line.task_id for line in _lines(bench) if line.event == "told"]


def in_flight(bench: Bench) -> str | None:
    """Id of the task that the producer has asked for and was not told about; None if none."""
    lines = _lines(bench)
    return lines[-1].task_id if lines and lines[-1].event == "asked" else None


def adopt(bench: Bench) -> None:
    """Put what an ended producer asked into the bench's records, so that its tasks are looked at.

    What it was not told is unknown from the moment of its end.
    """
    spec = msgspec.json.decode(_spec(bench).read_bytes(), type=Spec)
    by_id = {submission.task_id: submission for submission in spec.submissions}
    told = {line.task_id: line for line in _lines(bench) if line.event == "told"}
    ended_ns = process_of(bench).exit_ns or time.monotonic_ns()
    never = Line(at_ns=ended_ns, task_id="", event="told",
                 answer={"error": "the producer ended before it was answered"})
    for line in _lines(bench):
        if line.event == "asked":
            answer = told.get(line.task_id, never)
            bench.submissions[line.task_id] = by_id[line.task_id]
            bench.records.append(Operation(
                name="submit", task_id=line.task_id, asked_ns=line.at_ns,
                answered_ns=answer.at_ns, outcome=answer.outcome, answer=answer.answer,
                request=msgspec.to_builtins(by_id[line.task_id])))


def _spec(bench: Bench) -> Path:
    return bench.lab.folder / f"{NAME}.json"


def _told(bench: Bench) -> Path:
    return bench.lab.folder / f"{NAME}.jsonl"


def _lines(bench: Bench) -> list[Line]:
    """The whole lines so far; one that its writer was killed over is left out."""
    path = _told(bench)
    written = path.read_bytes() if path.exists() else b""
    return [msgspec.json.decode(line, type=Line)
            for line in written.splitlines(keepends=True) if line.endswith(b"\n")]


def main(path: Path) -> int:
    """Submit everything, one after the other, and write down each question and each answer."""
    spec = msgspec.json.decode(path.read_bytes(), type=Spec)
    file = os.open(spec.told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    site = Site(spec.broker_url, spec.prefix, Path(spec.witness), spec.timing)
    with contextlib.closing(load_target(spec.target).open(site)) as target:
        for submission in spec.submissions:
            began_ns = time.monotonic_ns()
            _write(file, Line(at_ns=began_ns, task_id=submission.task_id, event="asked"))
            error: Exception | None = None
            try:
                target.submit(submission)
            except Exception as raised:  # whatever it was, its outcome is written down
                error = raised
            _write(file, Line(at_ns=time.monotonic_ns(), task_id=submission.task_id, event="told",
                              outcome=outcome_of(error), answer=answer_of(error)))
            _await(began_ns + spec.every_ms * 1_000_000)
    return 0


def _await(until_ns: int) -> None:
    wait_for(lambda: time.monotonic_ns() >= until_ns, reason="the next submission's turn",
             limit_s=60)


def _write(file: int, line: Line) -> None:
    os.write(file, msgspec.json.encode(line) + b"\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

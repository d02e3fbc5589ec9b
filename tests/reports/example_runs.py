"""Small histories with a known story, written as a run would have written them.

Nothing runs: `play` works a queue on paper, with one clock and no chance, and so every call gives
the same bytes. The verdicts are the real checkers' verdicts on these histories.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from dtq_conformance import history
from dtq_conformance.checker import judge
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.clauses import load_clauses
from dtq_conformance.history import (
    Fault,
    Header,
    Mark,
    Pace,
    Process,
    Record,
    Stall,
    Timing,
    Witness,
)
from dtq_conformance.operation import Operation
from dtq_conformance.target import Submission, TaskView
from dtq_conformance.verdict import RunVerdict

BEGAN_NS = 5_000_000_000_000
TIMING = Timing(lease_ms=1000, heartbeat_ms=200, reap_ms=200, schedule_ms=50, drain_ms=3000,
                recovery_ms=8000, base_delay_ms=100, max_delay_ms=800, jitter=0.2)
CLAUSES = ("DLV-01", "DLV-02", "DLV-05", "DLV-07", "DLV-09", "RETRY-01", "RETRY-02")
AFTER_A_KILL = (*CLAUSES, "DLV-03")
AFTER_TWO_KILLS = (*AFTER_A_KILL, "DLV-04")


@dataclass(frozen=True)
class Story:
    """What happens in a run on paper: how much work, who is killed when, what the queue forgets.

    `kills` maps a worker's number to the time of its SIGKILL; a worker that is killed is replaced.
    `loses_after` is the number of lost holders after which the queue forgets a task.
    """

    trial: str
    clauses: tuple[str, ...] = CLAUSES
    tasks: int = 21
    workers: int = 2
    concurrency: int = 1
    task_ms: int = 150
    kills: Mapping[int, int] = field(default_factory=dict)
    loses_after: int | None = None
    deletes: int | None = None
    stall_ms: tuple[int, int] | None = None


@dataclass
class Paper:
    """The state of a run on paper."""

    story: Story
    records: list[Record] = field(default_factory=list)
    waiting: list[tuple[int, int, int]] = field(default_factory=list)
    slots: list[tuple[int, int]] = field(default_factory=list)
    attempts: dict[int, int] = field(default_factory=dict)
    settled: dict[int, dict[str, Any]] = field(default_factory=dict)
    last_ms: int = 0


def task_id(number: int) -> str:
    """An id that looks like one: 32 hexadecimal digits, the same on every call."""
    return f"{(number + 1) * 0x9E3779B97F4A7C15 % (1 << 64):016x}{number:016x}"


def ns(at_ms: int) -> int:
    return BEGAN_NS + at_ms * 1_000_000


def play(story: Story) -> list[Record]:
    """Work the queue to its end and return what a run would have recorded."""
    paper = Paper(story)
    for number in range(story.tasks):
        _submit(paper, number, 40 + number * 2 if story.tasks < 100 else 40 + number // 2)
    for worker in range(1, story.workers + 1):
        _hire(paper, worker, 10 + worker)
    while paper.waiting and paper.slots:
        _work_one(paper)
    _end(paper)
    return paper.records


def _submit(paper: Paper, number: int, at_ms: int) -> None:
    priority = 9 - number % 10 if paper.story.tasks > 100 else 5
    asked = Submission(task_id=task_id(number), priority=priority,
                       payload={"steps": [["sleep", paper.story.task_ms]], "label": f"t{number}"})
    paper.records.append(Operation(
        name="submit", asked_ns=ns(at_ms), answered_ns=ns(at_ms + 1), outcome="ok",
        task_id=task_id(number), request=msgspec.to_builtins(asked)))
    heapq.heappush(paper.waiting, (at_ms + 1, -priority, number))


def _hire(paper: Paper, worker: int, at_ms: int) -> None:
    paper.records.append(Process(at_ns=ns(at_ms), event="start", role="worker",
                                 name=f"worker-{worker}", pid=4700 + worker,
                                 concurrency=paper.story.concurrency))
    for _ in range(paper.story.concurrency):
        heapq.heappush(paper.slots, (at_ms + 120, worker))


def _work_one(paper: Paper) -> None:
    """Let the slot that is free first take the most urgent task that waits."""
    free_ms, worker = heapq.heappop(paper.slots)
    kill_ms = paper.story.kills.get(worker)
    if kill_ms is not None and free_ms >= kill_ms:
        return
    start_ms = max(free_ms, min(paper.waiting)[0])
    ready = [entry for entry in paper.waiting if entry[0] <= start_ms]
    entry = min(ready, key=lambda e: (e[1], e[0]))
    if kill_ms is not None and start_ms >= kill_ms:
        _kill(paper, worker, kill_ms)
        return
    paper.waiting.remove(entry)
    heapq.heapify(paper.waiting)
    _execute(paper, worker, entry, start_ms)


def _execute(paper: Paper, worker: int, entry: tuple[int, int, int], start_ms: int) -> None:
    _, urgency, number = entry
    attempt = paper.attempts[number] = paper.attempts.get(number, 0) + 1
    end_ms = start_ms + paper.story.task_ms + number % 7
    who: dict[str, Any] = {"attempt": attempt, "worker_id": f"worker-{worker}",
                           "pid": 4700 + worker}
    paper.records.append(Witness(at_ns=ns(start_ms), event="start", task_id=task_id(number),
                                 label=f"t{number}", **who))
    kill_ms = paper.story.kills.get(worker)
    if kill_ms is not None and end_ms >= kill_ms:
        _kill(paper, worker, kill_ms)
        if attempt != paper.story.loses_after:
            again_ms = kill_ms + TIMING.lease_ms + TIMING.reap_ms // 2
            heapq.heappush(paper.waiting, (again_ms, urgency, number))
        return
    paper.records.append(Witness(at_ns=ns(end_ms), event="end", task_id=task_id(number),
                                 label=f"t{number}", outcome="ok", **who))
    paper.settled[number] = who
    paper.last_ms = max(paper.last_ms, end_ms)
    heapq.heappush(paper.slots, (end_ms + 4, worker))


def _kill(paper: Paper, worker: int, at_ms: int) -> None:
    """Record a worker's SIGKILL once, and start another in its place."""
    pid = 4700 + worker
    if any(isinstance(r, Process) and r.event == "exit" and r.pid == pid for r in paper.records):
        return
    number = sum(isinstance(r, Fault) and r.phase == "begin" for r in paper.records)
    for phase, late_ms in (("begin", 0), ("bit", 2), ("end", 2)):
        paper.records.append(msgspec.convert(
            {"kind": "fault", "at_ns": ns(at_ms + late_ms), "fault": "kill_worker",
             "number": number, "phase": phase, "effect": "killed", "pids": [pid],
             "detail": {"worker": f"worker-{worker}"}}, Fault))
    paper.records.append(Process(at_ns=ns(at_ms + 1), event="exit", role="worker",
                                 name=f"worker-{worker}", pid=pid, signal=9, asked="SIGKILL"))
    paper.records.append(Mark(
        name=f"start_without_end_{number}", held=True, evidence={"pid": pid},
        sentence=f"worker-{worker} (pid {pid}) died between a start line and its end line."))
    _hire(paper, paper.story.workers + 1 + number, at_ms + 60)


def _end(paper: Paper) -> None:
    """Look at every task, ask for the dead letters, and stop the workers that are left."""
    story = paper.story
    looked_ms = paper.last_ms + 300
    if story.loses_after is not None or story.deletes is not None:
        looked_ms = max(paper.last_ms, *story.kills.values(), 0) + TIMING.recovery_ms + 50
    if story.deletes is not None:
        paper.records.append(Fault(
            at_ns=ns(90), fault="delete_task", number=0, phase="begin", effect="deleted",
            detail={"task_id": task_id(story.deletes)}))
    for number in range(story.tasks):
        _look(paper, number, looked_ms + number // 20)
    over_ms = looked_ms + story.tasks // 20 + 5
    paper.records.append(Operation(name="dead_letters", asked_ns=ns(over_ms), outcome="ok",
                                   answered_ns=ns(over_ms + 1), answer={"letters": []}))
    dead = {r.pid for r in paper.records if isinstance(r, Process) and r.event == "exit"}
    living = [r for r in paper.records if isinstance(r, Process) and r.pid not in dead]
    for process in living:
        paper.records.append(Process(
            at_ns=ns(over_ms + 60), event="exit", role="worker", name=process.name,
            pid=process.pid, exit_code=0, asked="SIGTERM"))
    if story.stall_ms:
        paper.records.append(Stall(from_ns=ns(story.stall_ms[0]), to_ns=ns(story.stall_ms[1])))
    paper.records.append(Pace(beats=over_ms // 20, first_ns=ns(0), last_ns=ns(over_ms + 60),
                              longest_gap_ms=24.0))


def _look(paper: Paper, number: int, at_ms: int) -> None:
    who = paper.settled.get(number)
    view = TaskView(task_id=task_id(number), status="succeeded" if who else "running",
                    attempt=paper.attempts.get(number, 1), max_attempts=5,
                    priority=9 - number % 10 if paper.story.tasks > 100 else 5,
                    task_type="probe_task", result=who)
    answer = {} if number == paper.story.deletes else msgspec.to_builtins(view)
    paper.records.append(Operation(name="look", asked_ns=ns(at_ms), answered_ns=ns(at_ms),
                                   outcome="ok", task_id=task_id(number), answer=answer))


def save(folder: Path, story: Story, records: Iterable[Record], *, target: str) -> RunVerdict:
    """Write the run's folder, judge the history as it is read back, and save the verdict."""
    folder.mkdir(parents=True)
    header = Header(
        format=history.FORMAT, run_id=folder.name, room="chaos", trial=story.trial, target=target,
        claims=["delivery", "submission", "status", "retry", "dlq", "shutdown"],
        broker="valkey 9.1.0 (embedded)", seed=7,
        began_at="2026-03-01T12:00:00+00:00", began_ns=BEGAN_NS, with_faults=bool(story.kills),
        timing=TIMING, clauses=list(story.clauses),
        versions={"python": "3.11.2", "dtq-contract": "0.1.0"},
        repeat=f"dtq-chaos replay reports/results/{folder.name}")
    history.write(folder / "history.jsonl", header, records)
    schedule = [{"fault": "kill_worker", "after": f"the start of attempt {n}"}
                for n, _ in enumerate(story.kills, start=1)]
    (folder / "schedule.json").write_text(json.dumps(schedule, indent=2) + "\n")
    verdict = judge(history.read(folder / "history.jsonl"), CHECKERS,
                    {clause.id: clause.claim for clause in load_clauses().values()})
    (folder / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    return verdict


HELD = Story("worker_killed_mid_handler", AFTER_A_KILL, kills={1: 700, 3: 1300},
             stall_ms=(1010, 1075))
VIOLATED = Story("worker_killed_twice", AFTER_TWO_KILLS, workers=1, kills={1: 260, 2: 3700},
                 loses_after=2)
CANARY = Story("canary", deletes=4)
BURST = Story("burst_under_fire", AFTER_A_KILL, tasks=600, concurrency=8, task_ms=50,
              kills={1: 500})


def held_run(parent: Path) -> Path:
    """21 tasks, two workers killed, two tasks executed twice, nothing lost."""
    save(parent / "held-0007", HELD, play(HELD), target="reference")
    return parent / "held-0007"


def violated_run(parent: Path) -> Path:
    """21 tasks, one worker killed twice over the same task, which is then lost."""
    save(parent / "violated-0007", VIOLATED, play(VIOLATED),
         target="broken:absorbs_second_redelivery")
    return parent / "violated-0007"


def canary_run(parent: Path) -> Path:
    """The harness itself deletes a task."""
    save(parent / "canary-0007", CANARY, play(CANARY), target="reference")
    return parent / "canary-0007"


def burst_run(parent: Path) -> Path:
    """600 tasks of all priorities; one of two workers killed with its hands full."""
    save(parent / "burst-0007", BURST, play(BURST), target="reference")
    return parent / "burst-0007"

"""What befalls the workers while the load runs: faults that a workload can name.

Comes in: the bench, and the load. Goes out: records of what was done to whom, in the bench, and
after the run the mark that proves it. What is in a worker's hands is read from the broker or,
where its keys cannot be read, from the witness file.
"""

from __future__ import annotations

import time
from typing import Literal

from dtq_conformance.bench import Bench, Worker
from dtq_conformance.history import Fault, History, Mark
from dtq_conformance.waiting import wait_for

from dtq_load.workload import Load

FAULT = "kill_worker_hands_full"
MARK = "hands_full_at_the_kill"
LIMIT_S = 300.0
"""The longest wait for the moment of a fault; the end of the load ends it sooner."""


def kill_with_hands_full(bench: Bench, load: Load, *, start: int) -> None:
    """SIGKILL the worker of the start of this number, its hands full, and start another.

    Full means that it has as many tasks in hand as its concurrency, both before it is stopped and
    while it stands still, and then is in the middle of one at least: what has ended and waits for
    its settlement would be executed again, but was not interrupted. Nothing is done if the load
    ends first.
    """
    def moment() -> Worker | bool:
        starts = bench.witnessed("start")
        if len(starts) >= start:
            return bench.worker_of(starts[start - 1].pid)
        return load.is_over()

    victim = wait_for(moment, reason=f"start number {start}", limit_s=LIMIT_S, every_s=0.02)
    if not isinstance(victim, Worker):
        return
    in_hand: list[str] = []

    def stopped_full() -> bool:
        in_hand.extend(_stop_if_full(bench, victim))
        return bool(in_hand) or load.is_over()

    wait_for(stopped_full, reason=f"{victim.name} to have its hands full", limit_s=LIMIT_S)
    if in_hand:
        _kill(bench, victim, in_hand)


def _stop_if_full(bench: Bench, worker: Worker) -> list[str]:
    """Stop the worker and return what it has in hand, if its hands are full; else let it go on."""
    if not worker.process.alive or not _is_full(worker, _in_hand(bench, worker)):
        return []
    worker.process.stop()
    in_hand = _in_hand(bench, worker)
    if _is_full(worker, in_hand) and _executing(bench, worker):
        return in_hand
    worker.process.resume()
    return []


def _in_hand(bench: Bench, worker: Worker) -> list[str]:
    """What the broker shows as pending for a worker; of a target whose keys cannot be read, what
    its handlers have begun and not ended."""
    if bench.has_schema:
        return bench.keyspace.in_hand(worker.name)
    return _executing(bench, worker)


def _executing(bench: Bench, worker: Worker) -> list[str]:
    """What its handlers have begun and not ended."""
    pids = worker.process.pids()
    lines = [line for line in bench.lab.witness_lines() if line.pid in pids]
    ended = {line.task_id for line in lines if line.event == "end"}
    return [line.task_id for line in lines if line.event == "start" and line.task_id not in ended]


def _is_full(worker: Worker, in_hand: list[str]) -> bool:
    return len(in_hand) == worker.concurrency


def _kill(bench: Bench, victim: Worker, in_hand: list[str]) -> None:
    def record(phase: Literal["begin", "bit", "end"]) -> None:
        bench.records.append(Fault(
            at_ns=time.monotonic_ns(), fault=FAULT, number=0, phase=phase,
            effect="killed", pids=pids,
            detail={"in_hand": in_hand, "concurrency": victim.concurrency,
                    "worker": victim.name}))

    pids = victim.process.pids()
    record("begin")
    victim.process.kill()
    victim.process.wait(LIMIT_S)
    record("bit")
    bench.start_worker(victim.concurrency)
    record("end")


def hands_full_at_the_kill(history: History) -> Mark:
    """The killed worker had as many tasks in hand as its concurrency."""
    for fault in history.of(Fault):
        if fault.fault == FAULT and fault.phase == "bit":
            held, of = len(fault.detail["in_hand"]), fault.detail["concurrency"]
            return Mark(name=MARK, held=held == of, evidence=fault.detail,
                        sentence=f"{fault.detail['worker']} was killed with {held} tasks in hand, "
                                 f"at a concurrency of {of}.")
    return Mark(name=MARK, held=False, sentence="No worker was killed with its hands full.")

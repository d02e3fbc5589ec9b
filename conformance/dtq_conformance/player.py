"""Play a life of tasks on a bench: each step waits for what it is about to befall, not for a time.

Comes in: the steps that `state_machine` drew. Goes out: operations, processes and faults in the
bench's records. Nothing is asserted here; the history is judged when it is over. A kill ends when
another worker is there: a target's recovery is not to be measured in the start of processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dtq_conformance.bench import Bench, Worker
from dtq_conformance.history import Effect, Fault, Witness
from dtq_conformance.state_machine import (
    SORTS,
    KillHolder,
    Life,
    Step,
    StopHolder,
    Submit,
    SubmitAgain,
    Wait,
)
from dtq_conformance.target import TERMINAL
from dtq_conformance.waiting import WaitedTooLong, wait_for

WORKERS = 3
"""Workers at the start of a life: most lives need no other, and starting one takes long."""
CONCURRENCY = 2
GONE_LIMIT_S = 10.0


class Player:
    """Plays one life on one bench, whose workers have been started."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._ids: dict[int, str] = {}
        self._fields: dict[int, dict[str, Any]] = {}
        self._faults = 0
        self._befallen: set[tuple[str, int]] = set()

    def play(self, life: Life) -> None:
        """Take every step, and look at every task after each."""
        for step in life:
            self._take(step)
            for task_id in self._ids.values():
                self._bench.look(task_id, always=False)

    def _take(self, step: Step) -> None:
        match step:
            case Submit(task, sort):
                self._submit(task, sort)
            case SubmitAgain(task):
                self._submit(task, None)
            case KillHolder(task):
                self._kill(task)
            case StopHolder(task):
                self._stop(task)
            case Wait():
                self._bench.await_all_terminal()

    def _submit(self, task: int, sort: str | None) -> None:
        """A new task of this sort, or the same one again."""
        if sort is not None:
            self._ids[task] = self._bench.new_id()
            self._fields[task] = {"sort": SORTS[sort], "label": f"task-{task}"}
        chosen = self._fields[task]["sort"]
        self._bench.submit(*chosen.steps, label=self._fields[task]["label"],
                           task_id=self._ids[task], **chosen.fields)

    def _kill(self, task: int) -> None:
        held = self._holder(task)
        if held is None:
            return
        worker, _ = held
        number = self._begin("kill_worker", "killed", worker)
        worker.process.kill()
        worker.process.wait(GONE_LIMIT_S)
        self._record("kill_worker", "killed", worker, number, "bit")
        self._await_living(1)
        self._record("kill_worker", "killed", worker, number, "end")

    def _stop(self, task: int) -> None:
        held = self._holder(task)
        if held is None:
            return
        worker, line = held
        self._await_living(2)
        number = self._begin("stop_worker", "stopped", worker)
        worker.process.stop()
        self._record("stop_worker", "stopped", worker, number, "bit")
        self._await(lambda: self._is_past(task, line.attempt))
        self._bench.look(self._ids[task])
        worker.process.resume()
        self._record("stop_worker", "stopped", worker, number, "end")

    def _await_living(self, count: int) -> None:
        """Start workers until so many live, and wait until they are ready."""
        while len(self._bench.living()) < count:
            self._bench.await_ready(self._bench.start_worker(CONCURRENCY))

    def _holder(self, task: int) -> tuple[Worker, Witness] | None:
        """The worker in which an attempt of this task is under way that nothing has befallen;
        None if the task is over first, or the target has forgotten it."""
        task_id = self._ids[task]
        found: list[tuple[Worker, Witness]] = []

        def known() -> bool:
            found.extend(self._under_way(task_id))
            return bool(found) or self._is_over(task_id)

        self._await(known)
        if not found:
            return None
        worker, line = found[-1]
        self._befallen.add((task_id, line.attempt))
        return worker, line

    def _under_way(self, task_id: str) -> list[tuple[Worker, Witness]]:
        lines = [line for line in self._bench.lab.witness_lines() if line.task_id == task_id]
        ended = {(line.attempt, line.pid) for line in lines if line.event == "end"}
        under_way = [line for line in lines if line.event == "start"
                     and (line.attempt, line.pid) not in ended
                     and (task_id, line.attempt) not in self._befallen]
        living = {worker.pid: worker for worker in self._bench.living()}
        return [(living[line.pid], line) for line in under_way if line.pid in living]

    def _is_past(self, task: int, attempt: int) -> bool:
        """Whether a later attempt of the task was started, or none will be."""
        task_id = self._ids[task]
        return self._is_over(task_id) or any(
            line.task_id == task_id and line.attempt > attempt
            for line in self._bench.witnessed("start"))

    def _is_over(self, task_id: str) -> bool:
        view = self._bench.look(task_id, always=False)
        return view is not None and view.status in TERMINAL

    def _await(self, condition: Callable[[], bool]) -> None:
        """Wait for what a broken target may never do, for as long as a target may take."""
        try:
            wait_for(condition, reason="the target", limit_s=self._bench.timing.recovery_ms / 1000,
                     every_s=0.01)
        except WaitedTooLong:
            return  # the life goes on; the history will tell

    def _begin(self, fault: str, effect: Effect, worker: Worker) -> int:
        self._faults += 1
        self._record(fault, effect, worker, self._faults, "begin")
        return self._faults

    def _record(self, fault: str, effect: Effect, worker: Worker, number: int,
                phase: Any) -> None:
        self._bench.records.append(Fault(
            at_ns=time.monotonic_ns(), fault=fault, number=number, phase=phase, effect=effect,
            pids=[worker.pid], detail={"worker": worker.name}))

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
from dtq_conformance.history import Effect, Execution, Fault, pair
from dtq_conformance.steps import (
    SORTS,
    Cancel,
    Discard,
    Drain,
    KillHolder,
    Life,
    Pause,
    Purge,
    PurgeLetters,
    Requeue,
    Resume,
    Step,
    StopHolder,
    Submit,
    SubmitAgain,
    SubmitItsKey,
    Wait,
)
from dtq_conformance.target import TERMINAL
from dtq_conformance.waiting import WaitedTooLong, wait_for

WORKERS = 3
"""Workers at the start of a life: most lives need no other, and starting one takes long."""
CONCURRENCY = 2
GONE_LIMIT_S = 10.0
DRAINED_MORE_MS = 5_000
"""So long beyond its drain limit a worker is waited for that was asked to stop."""


class Player:
    """Plays one life on one bench, whose workers have been started."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._ids: dict[int, str] = {}
        self._sorts: dict[int, str] = {}
        self._faults = 0
        self._paused = False
        self._befallen: set[tuple[str, int]] = set()
        self._draining: list[tuple[Worker, int]] = []

    def play(self, life: Life) -> None:
        """Take every step, look at every task after each, and see those off who stop."""
        for step in life:
            self._take(step)
            for task_id in self._bench.submissions:
                self._bench.look(task_id, always=False)
        for worker, number in self._draining:
            self._await(lambda worker=worker: not worker.process.alive,  # type: ignore[misc]
                        limit_ms=self._bench.timing.drain_ms + DRAINED_MORE_MS)
            self._record("drain_worker", "terminated", worker, number, "end")

    def _take(self, step: Step) -> None:
        match step:
            case Submit(task, sort):
                self._ids[task] = self._bench.new_id()
                self._sorts[task] = sort
                self._submit(task, self._ids[task])
            case SubmitAgain(task):
                self._submit(task, self._ids[task])
            case SubmitItsKey(task):
                self._submit(task, self._bench.new_id())
            case KillHolder(task):
                self._kill(task)
            case StopHolder(task):
                self._stop(task)
            case Drain():
                self._drain()
            case Wait():
                self._bench.await_all_terminal()
            case _:
                self._administer(step)

    def _administer(self, step: Step) -> None:
        bench = self._bench
        match step:
            case Cancel(task):
                self._await_begun(task)
                bench.cancel(self._ids[task])
            case Requeue(task):
                self._await_over(task)
                bench.requeue(self._ids[task])
            case Discard(task):
                self._await_over(task)
                bench.discard(self._ids[task])
            case PurgeLetters(task):
                self._await_over(task)
                bench.purge_dead_letters()
            case Purge():
                bench.purge()
            case Pause():
                bench.pause()
                self._paused = True
            case Resume():
                bench.resume()
                self._paused = False

    def _submit(self, task: int, task_id: str) -> None:
        """What was drawn for this task, under this id."""
        sort = SORTS[self._sorts[task]]
        key = f"key-{task}" if sort.has_key else None
        self._bench.submit(*sort.steps, label=f"task-{task}", task_id=task_id, idempotency_key=key,
                           **sort.fields)

    # ------------------------------------------------------------ befalling workers

    def _kill(self, task: int) -> None:
        held = self._holder(task)
        if held is None:
            return
        worker, _ = held
        number = self._begin("kill_worker", "killed", worker)
        worker.process.kill()
        worker.process.wait(GONE_LIMIT_S)
        self._record("kill_worker", "killed", worker, number, "bit")
        self._await_staying(1)
        self._record("kill_worker", "killed", worker, number, "end")

    def _stop(self, task: int) -> None:
        held = self._holder(task)
        if held is None:
            return
        worker, execution = held
        self._await_staying(2)
        number = self._begin("stop_worker", "stopped", worker)
        worker.process.stop()
        self._record("stop_worker", "stopped", worker, number, "bit")
        self._await(lambda: self._is_past(task, execution))
        self._bench.look(self._ids[task])
        worker.process.resume()
        self._record("stop_worker", "stopped", worker, number, "end")

    def _drain(self) -> None:
        """Ask the busiest worker to stop, when another one is there in its place. It stands still
        for the moment that it takes to see what is in its hands."""
        staying = self._staying()
        self._await_staying(len(staying) + 1)
        open_ = [execution.pid for execution in self._open()]
        worker = max(staying, key=lambda each: open_.count(each.pid), default=None)
        if worker is None or not worker.process.alive:
            return
        worker.process.stop()
        hands = self._hands(worker)
        number = self._begin("drain_worker", "terminated", worker)
        worker.process.terminate()
        worker.process.resume()
        self._record("drain_worker", "terminated", worker, number, "bit", **hands)
        self._draining.append((worker, number))

    def _hands(self, worker: Worker) -> dict[str, Any]:
        """What the broker shows as pending for a worker, of a target whose keys can be read."""
        if not self._bench.has_schema:
            return {}
        in_hand = self._bench.keyspace.in_hand(worker.name)
        started = {line.task_id for line in self._bench.lab.witness_lines()
                   if line.pid == worker.pid}
        return {"in_hand": in_hand,
                "unstarted": [task_id for task_id in in_hand if task_id not in started]}

    def _staying(self) -> list[Worker]:
        """The living workers that were not asked to stop."""
        leaving = [worker for worker, _ in self._draining]
        return [worker for worker in self._bench.living() if worker not in leaving]

    def _await_staying(self, count: int) -> None:
        """Start workers until so many stay, and wait until they are ready."""
        while len(self._staying()) < count:
            self._bench.await_ready(self._bench.start_worker(CONCURRENCY))

    # ------------------------------------------------------------ watching

    def _open(self) -> list[Execution]:
        """The executions that are under way, or were when their process died."""
        return [execution for execution in pair(self._bench.lab.witness_lines())
                if execution.end_ns is None]

    def _holder(self, task: int) -> tuple[Worker, Execution] | None:
        """The worker in which an attempt of this task is under way that nothing has befallen;
        None if the task is over first, waits in a pause, or the target has forgotten it."""
        task_id = self._ids[task]
        found: list[tuple[Worker, Execution]] = []

        def known() -> bool:
            found.extend(self._under_way(task_id))
            return bool(found) or self._is_over(task_id) or self._is_held_up(task_id)

        self._await(known)
        if not found:
            return None
        worker, execution = found[-1]
        self._befallen.add((task_id, execution.start_ns))
        return worker, execution

    def _under_way(self, task_id: str) -> list[tuple[Worker, Execution]]:
        staying = {worker.pid: worker for worker in self._staying()}
        return [(staying[execution.pid], execution) for execution in self._open()
                if execution.task_id == task_id and execution.pid in staying
                and (task_id, execution.start_ns) not in self._befallen]

    def _is_past(self, task: int, execution: Execution) -> bool:
        """Whether the task was started again after this execution, or will not be."""
        task_id = self._ids[task]
        return self._is_over(task_id) or any(
            line.task_id == task_id and line.at_ns > execution.start_ns
            for line in self._bench.witnessed("start"))

    def _is_held_up(self, task_id: str) -> bool:
        """Whether a task waits, and the queue is paused."""
        view = self._bench.look(task_id, always=False) if self._paused else None
        return view is not None and view.status in ("pending", "queued", "retrying")

    def _await_begun(self, task: int) -> None:
        """Wait until a task that holds was started, is over, or waits in a pause."""
        task_id = self._ids[task]
        if SORTS[self._sorts[task]].holds:
            self._await(lambda: any(line.task_id == task_id
                                    for line in self._bench.witnessed("start"))
                        or self._is_over(task_id) or self._is_held_up(task_id))

    def _await_over(self, task: int) -> None:
        """Wait until a task is over, unless it may wait in a pause."""
        if not self._paused:
            self._await(lambda: self._is_over(self._ids[task]))

    def _is_over(self, task_id: str) -> bool:
        view = self._bench.look(task_id, always=False)
        return view is not None and view.status in TERMINAL

    def _await(self, condition: Callable[[], bool], *, limit_ms: int | None = None) -> None:
        """Wait for what a broken target may never do, for as long as a target may take."""
        limit_ms = limit_ms or self._bench.timing.recovery_ms
        try:
            wait_for(condition, reason="the target", limit_s=limit_ms / 1000, every_s=0.01)
        except WaitedTooLong:
            return  # the life goes on; the history will tell

    def _begin(self, fault: str, effect: Effect, worker: Worker) -> int:
        self._faults += 1
        self._record(fault, effect, worker, self._faults, "begin")
        return self._faults

    def _record(self, fault: str, effect: Effect, worker: Worker, number: int,
                phase: Any, **detail: Any) -> None:
        self._bench.records.append(Fault(
            at_ns=time.monotonic_ns(), fault=fault, number=number, phase=phase, effect=effect,
            pids=[worker.pid], detail={"worker": worker.name, **detail}))

"""A small simulation of the contract, without a clock, that records what it does as a run would.

Tasks wait in the order of priority and entry, workers take and execute them, attempts fail and are
tried again, leases end. What befalls workers is drawn too: they are killed, stopped, cut off, asked
to stop, and replies to them are lost. `generated` draws what is to happen. Times are nanoseconds.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtq_conformance import plan
from dtq_conformance.history import Effect, Fault, Process, Record, Witness
from dtq_conformance.operation import Operation, Outcome

from tests.conformance.histories import BEGAN_NS, TIMING

MS = 1_000_000
LEASE, HEARTBEAT, REAP = TIMING.lease_ms * MS, TIMING.heartbeat_ms * MS, TIMING.reap_ms * MS
DRAIN = TIMING.drain_ms * MS


@dataclass(eq=False)
class Task:
    """A task as the simulated engine has it. `holder` is the execution that may settle it."""

    request: dict[str, Any]
    status: str = ""
    attempt: int = 1
    losses: int = 0
    entry: int = 0
    is_lost: bool = False
    holder: Held | None = None
    result: Any = None
    error_class: str | None = None
    letter: dict[str, Any] | None = None
    accepted_ns: int = 0
    is_called_off: bool = False
    is_discarded: bool = False

    @property
    def task_id(self) -> str:
        return str(self.request["task_id"])


@dataclass(eq=False)
class Worker:
    """A worker process. `away` until an instant: stopped, or cut off from the broker."""

    name: str
    pid: int
    concurrency: int
    is_alive: bool = True
    is_draining: bool = False
    stopped_until: int = 0
    cut_until: int = 0
    held: list[Held] = field(default_factory=list)


@dataclass(eq=False)
class Held:
    """An attempt in a worker's hands."""

    task: Task
    attempt: int
    worker: Worker
    taken_ns: int
    has_started: bool = False


class Simulation:
    """Runs one history from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0
        self.records: list[Record] = []
        self.tasks: list[Task] = []
        self.waiting: list[Task] = []
        self.workers: list[Worker] = []
        self._to_terminate = False
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count(1)

    # ------------------------------------------------------------ time and records

    def after(self, span_ns: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + round(span_ns), next(self._numbers), what))

    def some(self, least_ms: float, most_ms: float) -> int:
        return round(self.random.uniform(least_ms, most_ms) * MS)

    def run(self) -> None:
        """Let everything happen that is to happen."""
        while self._events:
            self.now, _, what = heapq.heappop(self._events)
            what()
            self._take_all()

    def operation(self, name: str, task_id: str | None, request: dict[str, Any],
                  answer: dict[str, Any], outcome: Outcome = "ok") -> None:
        self.records.append(Operation(
            name=name, task_id=task_id, asked_ns=BEGAN_NS + self.now - 1000,
            answered_ns=BEGAN_NS + self.now, outcome=outcome, request=request, answer=answer))

    def fault(self, effect: Effect, phase: Any, number: int, pids: list[int],
              **detail: Any) -> None:
        self.records.append(Fault(at_ns=BEGAN_NS + self.now, fault=effect, number=number,
                                  phase=phase, effect=effect, pids=pids, detail=detail))

    def witness(self, held: Held, event: Any, outcome: Any = None) -> None:
        payload = held.task.request["payload"]
        self.records.append(Witness(
            at_ns=BEGAN_NS + self.now, event=event, task_id=held.task.task_id,
            attempt=held.attempt, worker_id=held.worker.name, pid=held.worker.pid,
            label=payload["label"], outcome=outcome))

    # ------------------------------------------------------------ asking

    def submit(self, task: Task, *, lost: bool = False) -> None:
        """Accept a task, or know it already. `lost`: the reply is, and it is sent again."""
        if not task.status:
            self.tasks.append(task)
            if task.request["delay_ms"]:
                task.status = "pending"
                self._schedule(task, task.request["delay_ms"])
            else:
                self._enqueue(task)
        if not lost:
            self.operation("submit", task.task_id, task.request, {})
            return
        number = next(self._numbers)
        for phase in ("begin", "bit", "end"):
            self.fault("reply_lost", phase, number, [], of="submission", task_id=task.task_id)
        self.operation("submit", task.task_id, task.request, {"error": "TimeoutError"}, "unknown")
        self.after(self.some(20, 60), lambda: self.submit(task))

    def refuse(self, request: dict[str, Any]) -> None:
        self.operation("submit", request["task_id"], request, {
            "code": "INVALID", "message": "priority must be 0 to 9"}, "refused")
        self.after(self.some(5, 500), lambda: self.operation("look", request["task_id"], {}, {}))

    def look(self, task: Task) -> None:
        answer = {"task_id": task.task_id, "status": task.status, "attempt": task.attempt,
                  **{name: task.request[name] for name in ("max_attempts", "priority",
                                                           "task_type")},
                  "result": task.result, "error_class": task.error_class}
        self.operation("look", task.task_id, {}, answer if task.status else {})

    def look_at_everything(self) -> None:
        for task in self.tasks:
            self.now += 2000
            self.look(task)
        self.now += 2000
        self.operation("dead_letters", None, {}, {
            "letters": [task.letter for task in self.tasks if task.letter]})

    # ------------------------------------------------------------ the engine

    def _schedule(self, task: Task, delay_ms: float) -> None:
        self.after(delay_ms * MS + self.some(0.1, TIMING.schedule_ms),
                   lambda: self._promote(task))

    def _promote(self, task: Task) -> None:
        task.attempt += task.status == "retrying"
        self._enqueue(task)

    def _enqueue(self, task: Task) -> None:
        task.status, task.entry = "queued", next(self._numbers)
        self.waiting.append(task)

    def _take_all(self) -> None:
        for worker in self.workers:
            if self._can_take(worker):
                self._take(worker)

    def _can_take(self, worker: Worker) -> bool:
        return (worker.is_alive and not worker.is_draining
                and worker.stopped_until <= self.now and worker.cut_until <= self.now)

    def _take(self, worker: Worker) -> None:
        self.waiting.sort(key=lambda task: (-task.request["priority"], task.entry))
        while self.waiting and len(worker.held) < worker.concurrency:
            task = self.waiting[0]
            if any(held.task.losses >= 2 for held in worker.held) or (
                    task.losses >= 2 and worker.held):
                return
            self._hand_over(worker, self.waiting.pop(0))

    def _hand_over(self, worker: Worker, task: Task) -> None:
        if task.is_lost:
            task.attempt += 1
        task.is_lost = False
        held = Held(task, task.attempt, worker, self.now)
        task.status, task.holder = "running", held
        worker.held.append(held)
        if self._to_terminate and worker.is_alive:
            self._to_terminate = False
            self.after(1000, lambda: self._terminate(worker))
        self.after(self.some(0.1, 2), lambda: self._start(held))

    def _start(self, held: Held) -> None:
        worker = held.worker
        if not worker.is_alive or held not in worker.held:
            return
        if worker.stopped_until > self.now:
            self.after(worker.stopped_until - self.now + 1, lambda: self._start(held))
            return
        if held.task.holder is not held or self.now > held.taken_ns + LEASE:
            worker.held.remove(held)  # its lease ended before it could start
            return
        held.has_started = True
        self.witness(held, "start")
        planned_ms = plan.duration_ms(held.task.request, held.attempt) or 0
        self.after(planned_ms * MS + self.some(0.05, 1), lambda: self._end(held))

    def _end(self, held: Held) -> None:
        worker = held.worker
        if not worker.is_alive or held not in worker.held:
            return
        if worker.stopped_until > self.now:
            self.after(worker.stopped_until - self.now + self.some(0.01, 1),
                       lambda: self._end(held))
            return
        ending = plan.ending(held.task.request, held.attempt)
        if ending == "dies":
            self.die(worker, signal=9, asked="terminate" if worker.is_draining else "")
            return
        returns_no_json = "return_unserialisable" in str(held.task.request)
        self.witness(held, "end", "ok" if ending == "ok" or returns_no_json else "failed")
        self.after(self.some(0.1, 1), lambda: self._settle(held, str(ending)))

    def _settle(self, held: Held, ending: str) -> None:
        worker, task = held.worker, held.task
        if not worker.is_alive or held not in worker.held:
            return
        away_until = max(worker.cut_until, worker.stopped_until)
        if away_until > self.now:
            self.after(away_until - self.now + self.some(0.1, 1),
                       lambda: self._settle(held, ending))
            return
        worker.held.remove(held)
        if task.holder is not held:
            return
        task.holder = None
        if self.random.random() < 0.03 and ending != "retryable":
            number = next(self._numbers)
            for phase in ("begin", "bit", "end"):
                self.fault("reply_lost", phase, number, [worker.pid], of="settlement",
                           task_id=task.task_id)
        if ending == "ok":
            task.status = "succeeded"
            task.result = {"attempt": held.attempt, "worker_id": worker.name, "pid": worker.pid}
        elif ending == "retryable" and held.attempt < task.request["max_attempts"]:
            task.status, task.error_class = "retrying", "RetryableError"
            nominal = min(TIMING.max_delay_ms, TIMING.base_delay_ms * 2 ** (held.attempt - 1))
            jitter = self.random.uniform(1 - TIMING.jitter, 1 + TIMING.jitter)
            self._schedule(task, round(nominal * jitter))
        else:
            self._bury(task, "RetryableError" if ending == "retryable" else "PermanentError")

    def _bury(self, task: Task, error_class: str) -> None:
        task.status, task.error_class, task.holder = "dead_lettered", error_class, None
        task.letter = {"task_id": task.task_id, "attempts_made": task.attempt,
                       "error_class": error_class}

    def lose(self, held: Held, from_ns: int) -> None:
        """The lease of this attempt is not renewed from now on, and ends."""
        renewed = max(held.taken_ns, from_ns - self.random.randrange(HEARTBEAT))
        self.after(renewed + LEASE - self.now + self.some(1, TIMING.reap_ms),
                   lambda: self._redeliver(held))

    def _redeliver(self, held: Held) -> None:
        task, worker = held.task, held.worker
        if task.holder is not held:
            return
        task.holder = None
        if task.attempt >= task.request["max_attempts"]:
            self._bury(task, "WorkerLost")
            return
        task.losses += 1
        task.is_lost = True
        self.waiting.append(task)
        if not worker.is_alive:
            worker.held.remove(held)

    # ------------------------------------------------------------ workers and what befalls them

    def add_worker(self, concurrency: int) -> None:
        number = len(self.workers) + 1
        worker = Worker(f"worker-{number}", 100 + number, concurrency)
        self.workers.append(worker)
        self.records.append(Process(
            at_ns=BEGAN_NS + self.now, event="start", role="worker", name=worker.name,
            pid=worker.pid, concurrency=concurrency))

    def die(self, worker: Worker, *, signal: int | None = None, code: int | None = None,
            asked: str = "", next_one: bool = True) -> None:
        """The process ends; another one is started a little later."""
        worker.is_alive = False
        self.records.append(Process(
            at_ns=BEGAN_NS + self.now, event="exit", role="worker", name=worker.name,
            pid=worker.pid, signal=signal, exit_code=code, asked=asked))
        for held in worker.held:
            if held.task.holder is held:
                self.lose(held, self.now)
        if next_one:
            self.after(self.some(20, 400), lambda: self.add_worker(worker.concurrency))

    def kill(self) -> None:
        worker = self.victim()
        if worker is None:
            return
        number = next(self._numbers)
        for phase in ("begin", "bit", "end"):
            self.fault("killed", phase, number, [worker.pid])
        self.now += 1000
        self.die(worker, signal=9, asked="kill")

    def stop(self) -> None:
        self._away("stopped")

    def cut(self) -> None:
        self._away("cut")

    def _away(self, effect: Effect) -> None:
        """Stopped or cut off, for less than a lease can bear or for far longer."""
        worker = self.victim()
        if worker is None:
            return
        span_ns = self.some(*self.random.choice([(50, 700), (1500, 2500)]))
        if effect == "stopped":
            worker.stopped_until = self.now + span_ns
        else:
            worker.cut_until = self.now + span_ns
        number = next(self._numbers)
        self.fault(effect, "begin", number, [worker.pid])
        self.fault(effect, "bit", number, [worker.pid])
        self.after(span_ns, lambda: self.fault(effect, "end", number, [worker.pid]))
        if span_ns > LEASE:
            for held in worker.held:
                self.lose(held, self.now)

    def terminate_at_take(self) -> None:
        """Ask the next worker that takes something to stop before it can start it."""
        self._to_terminate = True

    def terminate(self) -> None:
        """Ask a worker to stop."""
        worker = self.victim()
        if worker is not None:
            self._terminate(worker)

    def _terminate(self, worker: Worker) -> None:
        if not self._can_take(worker):
            return
        unstarted = [held for held in worker.held if not held.has_started]
        number = next(self._numbers)
        for phase in ("begin", "bit", "end"):
            self.fault("terminated", phase, number, [worker.pid],
                       in_hand=[held.task.task_id for held in worker.held],
                       unstarted=[held.task.task_id for held in unstarted])
        worker.is_draining = True
        for held in unstarted:
            worker.held.remove(held)
            held.task.status, held.task.holder = "queued", None
            self.waiting.append(held.task)
        self._leave(worker, self.now + DRAIN)

    def _leave(self, worker: Worker, limit_ns: int) -> None:
        if not worker.is_alive:
            return
        if worker.held and self.now < limit_ns:
            self.after(MS, lambda: self._leave(worker, limit_ns))
            return
        self.die(worker, code=0, asked="terminate")

    def victim(self) -> Worker | None:
        """A worker that nothing befalls yet, rather one with something in hand."""
        able = [worker for worker in self.workers if self._can_take(worker)]
        busy = [worker for worker in able if worker.held]
        return self.random.choice(busy or able) if able else None

"""What callers and administrators ask for, in the simulation: cancels, pauses, times to live, keys,
requeues, discards and purges.

It draws from a random source of its own, so that nothing else happens otherwise because of it,
unless it is told to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
from dtq_conformance.target import TERMINAL, Submission

from tests.conformance.simulated_trouble import TroubledSimulation
from tests.conformance.simulation import HEARTBEAT, MS, Held, Task, Worker

SHARE = 0.35
"""In so many histories somebody administers."""
STEPS: tuple[list[dict[str, Any]], ...] = (
    [], [{"sleep": 60}], [{"sleep": 400}], [{"fail": "permanent"}],
    [{"sleep": 150}, {"fail": "retryable"}], [{"fail": "retryable", "until_attempt": 1}],
    [{"sleep": 40}, {"kill": True, "until_attempt": 1}])
MORTAL = (40, 150, 600, 3_000)
WAITING = ("pending", "queued", "retrying")


class AdministeredSimulation(TroubledSimulation):
    """A simulation in which tasks are cancelled, keyed, mortal and requeued, and queues paused."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.office = random.Random(f"administration {seed}")
        self._is_paused = False
        self._owners: dict[str, Task] = {}
        self._ended: list[Held] = []
        self._absent: list[str] = []

    def plan_administration(self, span_ms: float) -> None:
        """Draw what is to be asked for, within this time."""
        if self.office.random() >= SHARE:
            return
        kinds: tuple[Callable[[], None], ...] = (
            self.submit_mortal, self.submit_keyed, self.cancel_some, self.pause, self.purge,
            self.requeue_some, self.discard_some, self.purge_letters)
        weights = (6, 6, 6, 2, 1, 6, 2, 0.5)
        for what in self.office.choices(kinds, weights, k=self.office.randrange(2, 14)):
            late_ms = 2_000 if what in (self.requeue_some, self.discard_some) else 300
            self.after(self.office.uniform(1, span_ms + late_ms) * MS, what)

    def _draw(self, **fields: Any) -> Task:
        return Task(msgspec.to_builtins(Submission(
            task_id=f"{self.office.getrandbits(128):032x}", priority=self.office.randrange(10),
            payload={"steps": self.office.choice(STEPS), "label": "administered"},
            max_attempts=self.office.choice((1, 2, 3)),
            delay_ms=self.office.choice((0, 0, 0, 120)), **fields)))

    def _refuse(self, name: str, task_id: str | None, code: str) -> None:
        self.operation(name, task_id, {}, {"code": code, "message": code}, "refused")

    # ------------------------------------------------------------ submitting

    def submit(self, task: Task, *, lost: bool = False) -> None:
        key = task.request["idempotency_key"]
        if not task.status:
            owner = self._owners.setdefault(key, task) if key else task
            if owner is not task:
                self._meet(task, owner)
                return
            task.accepted_ns = self.now
        super().submit(task, lost=lost)

    def _meet(self, task: Task, owner: Task) -> None:
        """The key has a task already."""
        self._absent.append(task.task_id)
        if owner.status in TERMINAL:
            self.operation("submit", task.task_id, task.request,
                           {"task_id": owner.task_id, "duplicate": True})
        else:
            self.operation("submit", task.task_id, task.request, {
                "code": "IDEMPOTENCY_IN_PROGRESS", "message": "", "task_id": owner.task_id},
                "refused")

    def look_at_everything(self) -> None:
        for task_id in self._absent:
            self.operation("look", task_id, {}, {})
        super().look_at_everything()

    def submit_mortal(self) -> None:
        self._live(self._draw(ttl_ms=self.office.choice(MORTAL)))

    def submit_keyed(self) -> None:
        """Two or three with one key, the first of them perhaps once more."""
        key = f"key-{self.office.getrandbits(32)}"
        first, *others = (self._draw(idempotency_key=key)
                          for _ in range(self.office.choice((2, 2, 3))))
        self._live(first)
        for other in (*others, *[first][:self.office.randrange(2)]):
            self.after(self.office.choice((0.01, 100, 2_500)) * self.office.random() * MS + 10,
                       lambda other=other: self.submit(other))  # type: ignore[misc]

    def _live(self, task: Task) -> None:
        self.submit(task)
        for at_ms in self.office.sample(range(1, 1_500), 3):
            self.after(at_ms * MS, lambda: self.look(task))

    # ------------------------------------------------------------ cancelling

    def cancel_some(self) -> None:
        """Rather an unfinished one; now and then one that nobody knows."""
        unfinished = [task for task in self.tasks if task.status not in TERMINAL]
        if self.office.random() < 0.1 or not self.tasks:
            self._refuse("cancel", f"{self.office.getrandbits(128):032x}", "TASK_NOT_FOUND")
            return
        self.cancel(self.office.choice(unfinished or self.tasks))

    def cancel(self, task: Task) -> None:
        if task.status in TERMINAL:
            self._refuse("cancel", task.task_id, "TASK_TERMINAL")
        elif task.status in WAITING:
            self._call_off(task)
            self.operation("cancel", task.task_id, {}, {"said": "cancelled"})
        else:
            task.is_called_off = True
            self.operation("cancel", task.task_id, {}, {"said": "requested"})
            if (held := task.holder) is not None:
                self.after(self.office.randrange(HEARTBEAT), lambda: self._interrupt(held))

    def _call_off(self, task: Task, status: str = "cancelled") -> None:
        task.status, task.holder, task.error_class, task.letter = status, None, None, None
        if task in self.waiting:
            self.waiting.remove(task)

    def _interrupt(self, held: Held) -> None:
        """The holder hears of the request, as soon as it can; a thread is not interrupted."""
        worker, task = held.worker, held.task
        away_ns = max(worker.stopped_until, worker.cut_until) - self.now
        if (not worker.is_alive or held not in worker.held or task.holder is not held
                or held in self._ended
                or "'block'" in str(task.request["payload"])):
            return
        if away_ns > 0:
            self.after(away_ns + MS, lambda: self._interrupt(held))
            return
        if held.has_started:
            self.witness(held, "end", "cancelled")
        worker.held.remove(held)
        self._call_off(task)

    def witness(self, held: Held, event: Any, outcome: Any = None) -> None:
        if event == "end":
            self._ended.append(held)
        super().witness(held, event, outcome)

    def _settle(self, held: Held, ending: str) -> None:
        was_holder = held.task.holder is held
        super()._settle(held, ending)
        if was_holder and held.task.is_called_off and held.task.status != "succeeded" and (
                held.task.holder is None):
            self._call_off(held.task)

    def _redeliver(self, held: Held) -> None:
        was_holder = held.task.holder is held
        super()._redeliver(held)
        if was_holder and held.task.is_called_off:
            self._call_off(held.task)

    def purge(self) -> None:
        waiting = [task for task in self.tasks if task.status in WAITING]
        for task in waiting:
            self.now += 2_000
            self.look(task)
        self.now += 2_000
        for task in waiting:
            self._call_off(task)
        self.operation("purge", None, {}, {"said": len(waiting)})

    # ------------------------------------------------------------ time to live

    def _is_too_old(self, task: Task) -> bool:
        ttl_ms = task.request["ttl_ms"]
        return bool(ttl_ms) and self.now > task.accepted_ns + ttl_ms * MS

    def _promote(self, task: Task) -> None:
        if task.status not in ("pending", "retrying"):
            return
        if self._is_too_old(task):
            self._call_off(task, "expired")
        else:
            super()._promote(task)

    def _take(self, worker: Worker) -> None:
        for task in list(self.waiting) if len(worker.held) < worker.concurrency else ():
            if task.is_called_off:
                self._call_off(task)
            elif self._is_too_old(task):
                self._call_off(task, "expired")
        super()._take(worker)

    # ------------------------------------------------------------ pausing

    def _take_all(self) -> None:
        if not self._is_paused:
            super()._take_all()

    def pause(self) -> None:
        """Pause the queue for a while, submit something in it, look at everything, resume it."""
        if self._is_paused:
            return
        self._is_paused = True
        self.operation("pause", None, {}, {})
        span_ns = self.office.choice((60, 600, 2_200)) * MS
        self.after(span_ns * self.office.random(), lambda: self._live(self._draw()))
        self.after(span_ns, self._resume)

    def _resume(self) -> None:
        for task in self.tasks:
            self.now += 2_000
            self.look(task)
        self.now += 2_000
        self.operation("resume", None, {}, {})
        self._is_paused = False

    # ------------------------------------------------------------ dead letters

    def _dead(self) -> Task | None:
        """Rather a task with a dead letter that nobody executes any more."""
        dead = [task for task in self.tasks if task.letter and not any(
            held.task is task for worker in self.workers if worker.is_alive
            for held in worker.held)]
        others = [task for task in self.tasks if task.status in TERMINAL and task not in dead
                  and not task.letter]
        return self.office.choice(dead or others) if dead or others else None

    def requeue_some(self) -> None:
        task = self._dead()
        if task is None:
            return
        self.look(task)
        self.now += 2_000
        if not task.letter:
            self._refuse("requeue", task.task_id, "NOT_REQUEUEABLE")
            return
        self.operation("requeue", task.task_id, {}, {})
        task.attempt, task.losses, task.error_class, task.letter = 1, 0, None, None
        task.accepted_ns, task.is_called_off, task.is_lost = self.now, False, False
        self._enqueue(task)
        self.after(self.office.uniform(1, 900) * MS, lambda: self.look(task))

    def discard_some(self) -> None:
        task = self._dead()
        if task is None:
            return
        if not task.letter:
            self._refuse("discard", task.task_id, "NOT_REQUEUEABLE")
            return
        task.letter, task.is_discarded = None, True
        self.operation("discard", task.task_id, {}, {})

    def purge_letters(self) -> None:
        dead = [task for task in self.tasks if task.letter]
        for task in dead:
            task.letter, task.is_discarded = None, True
        self.operation("purge_dead_letters", None, {}, {"said": len(dead)})

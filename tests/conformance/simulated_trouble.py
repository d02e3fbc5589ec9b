"""What interrupts a delivery, in the simulation: lost takes, a lost group, a broker that was away,
a process that is replaced under its id, an entry of nobody, a handler that hangs.

A good engine keeps its promises through all of it, so most of it leaves no more than its record.
It has a random source of its own, so that nothing else is drawn otherwise because of it.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
from dtq_conformance.history import Effect
from dtq_conformance.operation import Outcome
from dtq_conformance.target import Submission

from tests.conformance.simulation import DRAIN, LEASE, MS, Held, Simulation, Task, Worker

KINDS = ("drop_group", "restart_broker", "replace", "forge", "lose_takes", "hang")
SHARE = 0.15
"""In so many histories there is such trouble."""

HANGS_MS, LIMIT_MS = 6_000, 300


class TroubledSimulation(Simulation):
    """A simulation in which deliveries are interrupted."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.trouble = random.Random(f"trouble {seed}")
        self._loses_takes = False
        self._orphans: list[dict[str, Any]] = []

    def plan_trouble(self, span_ms: float) -> None:
        """Draw what is to happen, within this time."""
        if self.trouble.random() < SHARE:
            what = getattr(self, self.trouble.choice(KINDS))
            self.after(self.trouble.uniform(35, span_ms + 600) * MS, what)

    def _strike(self, effect: Effect, pids: list[int], **detail: Any) -> None:
        number = next(self._numbers)
        for phase in ("begin", "bit", "end"):
            self.fault(effect, phase, number, pids, **detail)

    def fault(self, effect: Effect, phase: Any, number: int, pids: list[int],
              **detail: Any) -> None:
        """A settlement that is sent again, since the reply to it was lost, counts once."""
        if detail.get("of") == "settlement":
            detail["counted"] = 1
        super().fault(effect, phase, number, pids, **detail)

    def drop_group(self) -> None:
        self._strike("group_dropped", [])

    def restart_broker(self) -> None:
        self._strike("broker_restarted", [])

    def forge(self) -> None:
        task_id = f"{self.trouble.getrandbits(128):032x}"
        self._strike("forged", [], task_id=task_id)
        self._orphans.append({"task_id": task_id, "attempts_made": 0,
                              "error_class": "OrphanEntry"})

    def operation(self, name: str, task_id: str | None, request: dict[str, Any],
                  answer: dict[str, Any], outcome: Outcome = "ok") -> None:
        if name == "dead_letters":
            answer = {"letters": [*answer["letters"], *self._orphans]}
        super().operation(name, task_id, request, answer, outcome)

    def lose_takes(self) -> None:
        """From now on some replies to takes are lost; the worker is given the tasks again."""
        self._loses_takes = True

    def _hand_over(self, worker: Worker, task: Task) -> None:
        super()._hand_over(worker, task)
        if self._loses_takes and self.trouble.random() < 0.5:
            self._strike("reply_lost", [worker.pid], of="take", task_id=task.task_id)

    def hang(self) -> None:
        """Submit a task whose handler blocks its worker for far longer than its time limit."""
        self.submit(Task(msgspec.to_builtins(Submission(
            task_id=f"{self.trouble.getrandbits(128):032x}", timeout_ms=LIMIT_MS,
            payload={"steps": [{"block": HANGS_MS}], "label": "hangs"}, max_attempts=2))))

    def _start(self, held: Held) -> None:
        before = held.has_started
        super()._start(held)
        if held.has_started and not before and "'block'" in str(held.task.request["payload"]):
            self.lose(held, self.now + LIMIT_MS * MS + LEASE)

    def replace(self) -> None:
        """Another process takes a worker's id: the old one drains."""
        worker = self.victim()
        if worker is None:
            return
        self._strike("replaced", [worker.pid], in_hand=[held.task.task_id for held in worker.held])
        worker.is_draining = True
        for held in [held for held in worker.held if not held.has_started]:
            worker.held.remove(held)
            held.task.status, held.task.holder = "queued", None
            self.waiting.append(held.task)
        self._leave(worker, self.now + DRAIN)

"""Good histories, drawn from a seed without a clock; `seeded_faults` makes bad ones of them.

`history_of` is all that others need. It draws tasks and what befalls workers, and lets `Simulation`
play it through to the end, as a trial does: wait, look at everything, stop the workers, look again.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
from dtq_conformance.history import History, Stall
from dtq_conformance.key_table import LETTERS, LEVEL, TASK, KeyGroup, KeysAtRest
from dtq_conformance.snapshot import Read, summarise
from dtq_conformance.target import TERMINAL, Submission

from tests.conformance.histories import BEGAN_NS, TIMING, header
from tests.conformance.simulated_administration import AdministeredSimulation
from tests.conformance.simulation import MS, Simulation, Task

STEPS: tuple[list[dict[str, Any]], ...] = (
    [], [{"sleep": 5}], [{"sleep": 40}], [{"sleep": 120}], [{"sleep": 1400}],
    [{"fail": "retryable", "until_attempt": 1}], [{"fail": "retryable", "until_attempt": 3}],
    [{"sleep": 10}, {"fail": "retryable"}], [{"fail": "permanent"}],
    [{"return_unserialisable": True}], [{"sleep": 30}, {"kill": True, "until_attempt": 1}],
    [{"kill": True, "until_attempt": 2}, {"sleep": 60}], [{"kill": True}], [{"sleep": 4000}])
WEIGHTS = (4, 6, 6, 3, 3, 2, 1, 1, 1, 0.5, 0.5, 0.4, 0.2, 0.4)


def _task(drawn: random.Random, number: int) -> Task:
    submission = Submission(
        task_id=f"{drawn.getrandbits(128):032x}", priority=drawn.randrange(10),
        payload={"steps": drawn.choices(STEPS, WEIGHTS)[0], "label": f"task-{number}"},
        max_attempts=drawn.choice((1, 2, 3, 5)),
        delay_ms=drawn.choice((0, 0, 0, 0, drawn.randrange(1, 400))))
    return Task(msgspec.to_builtins(submission))


def history_of(seed: int) -> History:
    """The history of this seed: the same whenever it is asked for, and a good one."""
    simulation = AdministeredSimulation(seed)
    drawn = simulation.random
    concurrency = drawn.choice((1, 1, 2, 3))
    for _ in range(drawn.choice((1, 2))):
        simulation.after(simulation.some(0, 30), lambda: simulation.add_worker(concurrency))
    span_ms = drawn.choice((5, 300, 1500))
    for number in range(drawn.randrange(3, 13)):
        _live(simulation, _task(drawn, number), span_ms)
    for what in drawn.choice(((), (), ("kill",), ("stop",), ("cut",), ("terminate",),
                             ("terminate_at_take",), ("kill", "kill", "kill"),
                             ("kill", "stop", "terminate"), ("terminate", "cut"),
                             ("stop", "stop", "cut", "stop"))):
        simulation.after(simulation.some(35, span_ms + 600), getattr(simulation, what))
    simulation.plan_trouble(span_ms)
    simulation.plan_administration(span_ms)
    instants = random.Random(f"snapshots {seed}")
    for _ in range(instants.randrange(1, 8)):
        simulation.after(instants.uniform(1, span_ms + 1200) * MS,
                         lambda: _take_snapshot(simulation))
    simulation.run()
    if drawn.random() < 0.1:
        simulation.records.append(Stall(from_ns=BEGAN_NS + 40 * MS, to_ns=BEGAN_NS + 190 * MS))
    assert all(task.status in TERMINAL for task in simulation.tasks)
    simulation.now += TIMING.recovery_ms * MS
    simulation.look_at_everything()
    for worker in simulation.workers:
        if worker.is_alive:
            simulation.now += simulation.some(30, 80)
            simulation.die(worker, code=0, asked="terminate", next_one=False)
    simulation.look_at_everything()
    simulation.records.append(_keys_at_rest(simulation))
    return History(header(seed=seed, run_id=f"generated-{seed}", claims=CLAIMS),
                   tuple(simulation.records))


CLAIMS = ["delivery", "submission", "status", "retry", "schedule", "priority", "dlq", "shutdown",
          "idempotency", "cancel", "ttl", "pause", "handlers"]


def _take_snapshot(simulation: Simulation) -> None:
    """The key space as an engine whose steps are atomic shows it at any instant."""
    tasks, now_ns = simulation.tasks, BEGAN_NS + simulation.now
    scheduled = [task for task in tasks if task.status in ("pending", "retrying")]
    holders = [task.holder.worker for task in tasks if task.holder is not None]
    simulation.records.append(summarise(Read(
        tasks=[(task.task_id, task.status, "default", str(task.request["priority"]),
                task.is_discarded)
               for task in tasks],
        entries=[("default", str(task.request["priority"]), task.task_id)
                 for task in tasks if task.status in ("queued", "running")],
        schedule=[task.task_id for task in scheduled],
        depth=["default", str(len(scheduled))] if scheduled else [],
        letters=[task.task_id for task in tasks if task.letter],
        results=[task.task_id for task in tasks if task.status == "succeeded"],
        pending=[(f"{worker.name}.0123abcd", 1) for worker in holders],
        workers=[(worker.name, worker.concurrency) for worker in simulation.workers], records=[]),
        asked_ns=now_ns, at_ns=now_ns + 1000))


def _keys_at_rest(simulation: Simulation) -> KeysAtRest:
    """The key space as a good engine leaves it."""
    found = [_keys(LEVEL, "stream", 10, members=0), _keys("queues", "set", 1),
             _keys("tasks:recent", "zset", 1), _keys("workers", "set", 1),
             _keys("worker:<worker_id>", "hash", len(simulation.workers), expires=True)]
    for status in sorted({task.status for task in simulation.tasks}):
        tasks = [task for task in simulation.tasks if task.status == status]
        for has_letter in (True, False):
            ids = [task.task_id for task in tasks if bool(task.letter) == has_letter]
            if ids:
                found.append(_keys(TASK, "hash", len(ids), expires=not has_letter, state=status,
                                   has_letter=has_letter, task_ids=ids[:5]))
            if ids and has_letter:
                found.append(_keys(LETTERS, "stream", 1, members=len(ids)))
            elif ids and status == "succeeded":
                found.append(_keys("result:<task_id>", "string", len(ids), expires=True,
                                   task_ids=ids[:5]))
    return KeysAtRest(at_ns=BEGAN_NS + simulation.now, groups=found)


def _keys(row: str, kind: str, count: int, **fields: Any) -> KeyGroup:
    given = {"expires": False, "members": count, "names": [f"{row} of {count}"]} | fields
    return KeyGroup(row=row, type=kind, count=count, **given)


def _live(simulation: Simulation, task: Task, span_ms: int) -> None:
    """Let a task be submitted, perhaps again, perhaps with a lost reply, and looked at."""
    drawn = simulation.random
    at_ns = simulation.some(0, span_ms)
    kind = drawn.random()
    if kind < 0.04:
        simulation.after(at_ns, lambda: simulation.refuse(task.request | {"priority": 12}))
        return
    simulation.after(at_ns, lambda: simulation.submit(task, lost=kind > 0.94))
    if 0.8 < kind < 0.9:
        simulation.after(at_ns + simulation.some(1, 1000), lambda: simulation.submit(task))
    for _ in range(drawn.randrange(4)):
        simulation.after(at_ns + simulation.some(1, 1500), lambda: simulation.look(task))

"""A worker is asked to stop when it has taken eight tasks and does not know it yet.

What the broker answers is 500 ms on its way, so the SIGTERM certainly falls between take and
start: all eight come back with their attempt unspent, and wait in order with seventy others for a
worker that takes one at a time.
"""

from __future__ import annotations

import random

from dtq_conformance.bench import Bench
from dtq_conformance.exchange import Exchange
from dtq_conformance.front import inspected, want

from dtq_chaos.fault import Stage
from dtq_chaos.marks import taken_and_not_started
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

TASKS = 8
LATENCY_MS = 500
BEFORE = "how tasks wait before they are taken"


def _plan(draw: random.Random) -> list[Entry]:
    del draw
    return [Entry(fault="delay_link", when=When(event="at_once"),
                  parameters={"link": "worker-1", "latency": LATENCY_MS, "worker": "worker-1",
                              "resumes": True}),
            Entry(fault="terminate_worker",
                  when=When(event="in_hand", count=TASKS, worker="worker-1"),
                  parameters={"worker": "worker-1"})]


def _set_up(stage: Stage) -> None:
    """The worker stands still until the delay is there: it might take and start before that."""
    bench = stage.bench
    for level in range(TASKS):
        task_id = bench.submit({"sleep": 50}, label="taken", max_attempts=1, priority=level)
        inspected(bench, "the broker", [BEFORE, task_id], bench.keyspace.waits_as(task_id))
    worker = bench.start_worker(TASKS, broker_url=stage.url_of("worker-1"))
    if stage.with_faults:
        worker.process.stop()


def _afterwards(stage: Stage) -> None:
    bench = stage.bench
    if stage.with_faults:
        stage.await_quietly(lambda: not bench.workers[0].process.alive,
                            reason="the worker that was asked to stop to end")
        _look_at_what_was_released(bench)
    for _ in range(70):
        bench.submit(priority=bench.random.randrange(10))
    bench.start_worker(1)


def _look_at_what_was_released(bench: Bench) -> None:
    """What was never started waits as it did before it was taken."""
    started = {line.task_id for line in bench.witnessed("start")}
    before = {each.words[1]: each.body for each in bench.records
              if isinstance(each, Exchange) and each.words[0] == BEFORE}
    for task_id, waited in before.items():
        if task_id not in started:
            inspected(bench, "the broker", [f"task {task_id} after its release"],
                      bench.keyspace.waits_as(task_id),
                      want("STOP-07", "a task that was taken and never started", holds=waited))


SCENARIO = Scenario(
    "worker_terminated_between_take_and_start",
    "A worker is asked to stop when it has taken eight tasks and does not know it yet.",
    ("STOP-01", "STOP-03", "STOP-07", "DLV-01", "DLV-27", "RETRY-01", "PRIO-02"),
    _plan, _set_up, (taken_and_not_started(count=TASKS),), _afterwards, needs_toxiproxy=True,
    needs=("redis-schema",))

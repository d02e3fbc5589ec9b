"""The heartbeat as a process of its own: no handler holds it up, and it ends with its worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for

from tests.reference.engine import Engine
from tests.reference.processes import LIMIT_S, heartbeat_of, start_worker, wait_for_status

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]


def test_a_handler_that_holds_up_the_loop_for_several_leases_keeps_its_task(
        lab: Lab, engine: Engine, tmp_path: Path) -> None:
    until = tmp_path / "until"
    start_worker(lab, engine, "blocked", concurrency=1)
    task_id = engine.submit(task_type="wait_and_block", payload={"until": str(until)})
    wait_for_status(engine, task_id, "running")
    other = start_worker(lab, engine, "other")
    key = engine.keys.worker_prefix + "blocked"
    first = int(engine.redis.hget(key, "last_heartbeat"))
    wait_for(lambda: int(engine.redis.hget(key, "last_heartbeat")) > first + 3_000,
             reason="three leases of heartbeats", limit_s=LIMIT_S)
    until.touch()
    task = wait_for_status(engine, task_id)
    assert (task.status, task.attempt, task.worker_id) == ("succeeded", 1, "blocked")
    assert other.alive


# WORK-13
def test_it_ends_with_a_worker_that_was_killed_alone(lab: Lab, engine: Engine) -> None:
    worker = start_worker(lab, engine)
    heartbeat = heartbeat_of(worker)
    os.kill(worker.pid, signal.SIGKILL)

    def is_gone() -> bool:
        return not heartbeat.is_running() or heartbeat.status() == psutil.STATUS_ZOMBIE

    wait_for(is_gone, reason="the heartbeat to end", limit_s=LIMIT_S)

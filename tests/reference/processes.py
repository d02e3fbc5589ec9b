"""Real worker processes for the tests, with leases and intervals below a second."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from dtq_conformance.broker import free_port
from dtq_conformance.lab import Lab, LabProcess
from dtq_conformance.waiting import wait_for
from dtq_reference.states import TERMINAL
from dtq_reference.task import Task

from tests.reference.engine import Engine

ROOT = Path(__file__).parents[2]
LIMIT_S = 30.0

_numbers = itertools.count(1)

TIMING = {"DTQ_VISIBILITY_TIMEOUT_S": "1", "DTQ_HEARTBEAT_INTERVAL_S": "0.1",
          "DTQ_REAP_INTERVAL_S": "0.1", "DTQ_SCHEDULER_INTERVAL_S": "0.02",
          "DTQ_RETRY_BASE_DELAY": "0.01", "DTQ_DRAIN_TIMEOUT_S": "20"}


def start_worker(lab: Lab, engine: Engine, worker_id: str = "", *, concurrency: int = 4,
                 queue: str = "default", **settings: object) -> LabProcess:
    """Start a worker and return when it is ready. `settings` are those of `Settings`."""
    name = f"worker-{next(_numbers)}"
    process = lab.start(
        name, [sys.executable, "-m", "dtq_reference.cli", "worker", "run", "--queue", queue,
               "--concurrency", str(concurrency), "--tasks", "tests.reference.odd_handlers"],
        role="worker", environment={
            **TIMING, "PYTHONPATH": str(ROOT), "DTQ_REDIS_URL": engine.settings.redis_url,
            "DTQ_KEY_PREFIX": engine.keys.prefix, "DTQ_WORKER_ID": worker_id or name,
            "DTQ_WITNESS": str(lab.witness),
            **{f"DTQ_{field.upper()}": str(value) for field, value in settings.items()}})
    wait_for(lambda: says(process, "is ready") or not process.alive, reason=f"{name} to be ready",
             limit_s=LIMIT_S)
    assert process.alive, process.log.read_text()
    return process


@contextmanager
def ending_what_starts(lab: Lab) -> Iterator[None]:
    """The lab's processes that start within are gone afterwards: a worker that nobody asks any more
    would poll until the last test."""
    before = len(lab.processes())
    try:
        yield
    finally:
        started = lab.processes()[before:]
        for process in started:
            process.kill()
        for process in started:
            process.wait(LIMIT_S)


@contextmanager
def served_api(lab: Lab, engine: Engine) -> Iterator[httpx.Client]:
    """A client of the API, which is a process of its own."""
    held, port = free_port()
    process = lab.start(
        f"api-{next(_numbers)}", [sys.executable, "-m", "dtq_reference.cli", "api", "run"],
        role="api", environment={
            "DTQ_REDIS_URL": engine.settings.redis_url, "DTQ_KEY_PREFIX": engine.keys.prefix,
            "DTQ_API_PORT": str(port)})
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT_S) as client:
        wait_for(lambda: status_of(client, "/health") == 200 or not process.alive,
                 reason="the API to be served", limit_s=LIMIT_S)
        yield client
    assert process.alive, process.log.read_text()
    process.terminate()
    process.wait(LIMIT_S)
    if held is not None:
        held.close()


def status_of(client: httpx.Client, path: str) -> int:
    """The HTTP status of a GET; 0 when nobody answers."""
    try:
        return client.get(path).status_code
    except httpx.TransportError:
        return 0


def says(process: LabProcess, words: str) -> bool:
    """Whether these words stand in the process's log."""
    return words in process.log.read_text()


def wait_for_status(engine: Engine, task_id: str, *statuses: str) -> Task:
    """The task, once it has one of these states; any terminal one if none is named."""

    def reached() -> Task | None:
        task = engine.queue.get(task_id)
        return task if task and task.status in (statuses or TERMINAL) else None

    return wait_for(reached, reason=f"task {task_id} to be {statuses or 'terminal'}",
                    limit_s=LIMIT_S)


def wait_for_worker(engine: Engine, worker_id: str, status: str) -> None:
    key = engine.keys.worker_prefix + worker_id
    wait_for(lambda: engine.redis.hget(key, "status") == status.encode(),
             reason=f"worker {worker_id} to be {status}", limit_s=LIMIT_S)


def heartbeat_of(process: LabProcess) -> psutil.Process:
    """The process of its own that a worker's heartbeat is, once it is there."""

    def found() -> psutil.Process | None:
        children = psutil.Process(process.pid).children()
        return next((child for child in children
                     if "dtq_reference.heartbeat_process" in child.cmdline()), None)

    return wait_for(found, reason=f"the heartbeat of {process.name}", limit_s=LIMIT_S)

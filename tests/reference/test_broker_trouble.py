"""Whatever befalls the broker, nobody has to restart the worker or the API: they come back by
themselves, and nothing that was accepted and that the server still has is lost.

How long that took is printed, and not judged but for a bound on waiting; the promise is 5 s.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dtq_conformance.lab import Lab, LabProcess
from dtq_conformance.waiting import wait_for
from dtq_reference.errors import BrokerUnreachable, DtqError

from tests.reference import troubles
from tests.reference.engine import Engine
from tests.reference.processes import (
    says,
    served_api,
    start_worker,
    status_of,
    wait_for_status,
)
from tests.reference.relay import relay_to
from tests.reference.troubles import Site, Trouble

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]

LIMIT_S = 30.0
PREFIX = "{trouble}:"


@dataclass(frozen=True)
class Case:
    """A trouble, the word by which the worker's log shows that it was bitten too, and whether
    /ready says that it lasts."""

    trouble: Trouble
    word: str
    is_seen: bool = True


REFUSING = [
    Case(troubles.restart_with_its_data, "Connection"),
    Case(troubles.loading, "loading the dataset"),
    Case(troubles.read_only, "read only replica"),
    Case(troubles.master_down, "read only replica"),
    Case(troubles.too_few_replicas, "NOREPLICAS"),
    Case(troubles.cannot_save, "MISCONF"),
    Case(troubles.busy, "BUSY"),
    Case(troubles.standing_still, "Timeout"),
    Case(troubles.half_open, "Timeout"),
]
PASSING = [
    Case(troubles.clients_killed, "", is_seen=False),
    Case(troubles.scripts_lost, "", is_seen=False),
    Case(troubles.groups_lost, "NOGROUP", is_seen=False),
    Case(troubles.groups_made_anew, "", is_seen=False),
]


def named(case: Case) -> str:
    return case.trouble.__name__


@pytest.fixture(params=["embedded", "path"])
def site(request: pytest.FixtureRequest, tmp_path: Path,
         need: Callable[[object, str], None]) -> Iterator[Site]:
    if request.param == "path":
        need(shutil.which("redis-server"), "redis-server is not on the PATH")
    with Lab(tmp_path / "logs", broker=request.param, persistence="always") as lab, \
            relay_to(urlsplit(lab.broker.url).port or 0) as relay, \
            closing(Engine(lab.broker.url, PREFIX)) as engine:
        yield Site(lab, engine, relay)


def through(site: Site) -> Engine:
    """The installation as who speaks through the relay sees it."""
    return Engine(f"redis://127.0.0.1:{site.relay.port}", PREFIX)


@pytest.fixture
def worker(site: Site) -> LabProcess:
    """A worker of two slots, whose leases outlast every trouble."""
    with closing(through(site)) as engine:
        return start_worker(site.lab, engine, "tough", concurrency=2, visibility_timeout_s=60)


@pytest.fixture
def ready(site: Site) -> Iterator[Callable[[], int]]:
    """What the API's /ready answers: 200, or 503 and why."""
    with closing(through(site)) as engine, served_api(site.lab, engine) as client:
        yield lambda: status_of(client, "/ready")


def submit_at_once(engine: Engine) -> str | None:
    """Submit without patience: the id of what was accepted or may have been, None if refused."""
    operations = engine.queue.operations
    try:
        return engine.queue.do(operations.submit(task_type="echo_task"), limit_s=0.1).task_id
    except DtqError as error:
        assert error.code == "BROKER_UNAVAILABLE"
    except BrokerUnreachable:
        pass
    return None


def recovers(site: Site, worker: LabProcess, ready: Callable[[], int]) -> None:
    """The worker takes new work and the API is ready, both by themselves."""
    began = time.monotonic()
    task = wait_for_status(site.engine, site.engine.submit())
    print(f"new work was done after {time.monotonic() - began:.2f} s")
    assert (task.status, task.worker_id) == ("succeeded", "tough")
    wait_for(lambda: ready() == 200, reason="the API to be ready", limit_s=LIMIT_S)
    print(f"/ready was 200 after {time.monotonic() - began:.2f} s")
    assert worker.alive


# WORK-15, WORK-22
@pytest.mark.parametrize("case", [*REFUSING, *PASSING], ids=named)
def test_nothing_accepted_is_lost_and_new_work_is_taken_again(
        site: Site, worker: LabProcess, ready: Callable[[], int], case: Case,
        tmp_path: Path) -> None:
    until, engine = tmp_path / "until", site.engine
    held = [engine.submit(task_type=name, payload={"until": str(until)})
            for name in ("wait_on_loop", "wait_in_thread")]
    for task_id in held:
        wait_for_status(engine, task_id, "running")
    waiting = [engine.submit(), engine.submit(delay_ms=1)]
    assert ready() == 200
    with case.trouble(site):
        until.touch()
        accepted = submit_at_once(engine)
        if case.word:
            wait_for(lambda: says(worker, case.word), reason=f"the worker to say {case.word}",
                     limit_s=LIMIT_S)
        if case.is_seen:
            wait_for(lambda: ready() == 503, reason="the API to say so", limit_s=LIMIT_S)
    recovers(site, worker, ready)
    for task_id in [*held, *waiting, *([accepted] if accepted else [])]:
        task = wait_for_status(engine, task_id)
        assert (task.status, task.attempt, task.worker_id) == ("succeeded", 1, "tough"), task


def test_a_server_that_lost_its_data_gets_new_work_done(
        site: Site, worker: LabProcess, ready: Callable[[], int], tmp_path: Path) -> None:
    until, engine = tmp_path / "until", site.engine
    lost = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(engine, lost, "running")
    with troubles.restart_without_its_data(site):
        wait_for(lambda: ready() == 503, reason="the API to say so", limit_s=LIMIT_S)
    recovers(site, worker, ready)
    until.touch()
    wait_for(lambda: says(worker, "was superseded"), reason="the outcome to be dropped",
             limit_s=LIMIT_S)
    assert engine.queue.get(lost) is None
    recovers(site, worker, ready)


# WORK-21
def test_out_of_memory_only_submissions_are_refused_and_all_else_goes_on(
        site: Site, worker: LabProcess, ready: Callable[[], int], tmp_path: Path) -> None:
    until, engine = tmp_path / "until", site.engine
    held = [engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
            for _ in range(2)]
    for task_id in held:
        wait_for_status(engine, task_id, "running")
    retried = engine.submit(task_type="flaky_task", payload={"failures": 1})
    buried = engine.submit(task_type="always_fail_task", max_attempts=1)
    with troubles.out_of_memory(site):
        wait_for(lambda: ready() == 503, reason="the API to say so", limit_s=LIMIT_S)
        assert submit_at_once(engine) is None
        until.touch()
        for task_id in [*held, retried]:
            assert wait_for_status(engine, task_id).status == "succeeded"
        assert wait_for_status(engine, buried).status == "dead_lettered"
        assert "OutOfMemoryError" in site.write_error()
    recovers(site, worker, ready)


# WORK-19
def test_no_lease_counts_as_ended_while_the_server_is_younger_than_one(tmp_path: Path) -> None:
    """It tells its age in whole seconds: started late in a second, it is soon said to be one."""
    wait_for(lambda: 0.5 < time.time() % 1 < 0.7, reason="a second's later half", limit_s=5)
    began = time.monotonic()
    with Lab(tmp_path / "logs", broker="embedded") as lab, closing(Engine(
            lab.broker.url, "young:", visibility_timeout_s=1, heartbeat_interval_s=0.25)) as engine:
        task_id = engine.submit()
        engine.lose_holder()
        worker = engine.worker()
        (taken,) = wait_for(lambda: engine.take(worker).tasks, reason="the end of the lease",
                            limit_s=LIMIT_S)
        assert time.monotonic() - began >= engine.settings.visibility_timeout_s
        assert taken.task_id == task_id


# STOP-01
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_waits_for_redis_ends_when_it_is_asked_to_stop(
        lab: Lab, number: signal.Signals) -> None:
    worker = lab.start(
        f"waits-{number.name}", [sys.executable, "-m", "dtq_reference.cli", "worker", "run"],
        role="worker", environment={"DTQ_REDIS_URL": "redis://127.0.0.1:1/0"})
    wait_for(lambda: says(worker, "sending again"), reason="it to miss Redis", limit_s=LIMIT_S)
    worker.send(number, asked="terminate")
    worker.wait(LIMIT_S)
    assert worker.exit_code == 0

"""The worker as a real process: it executes, drains, and outlives what befalls it and the broker.
"""

from __future__ import annotations

import secrets
import signal
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from dtq_conformance.broker import free_port
from dtq_conformance.lab import Lab, LabProcess
from dtq_conformance.waiting import wait_for
from dtq_reference.errors import BrokerUnreachable, DtqError
from dtq_reference.executor import OVERDUE_EXIT_CODE

from tests.reference.engine import GROUP, Engine
from tests.reference.processes import (
    LIMIT_S,
    ending_what_starts,
    heartbeat_of,
    says,
    start_worker,
    wait_for_status,
    wait_for_worker,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]


@pytest.fixture(scope="module")
def busy_engine(lab: Lab) -> Iterator[Engine]:
    """An installation with one worker, for tests that leave the worker as it was."""
    engine = Engine(lab.broker.url, f"t-{secrets.token_hex(4)}:")
    with ending_what_starts(lab):
        start_worker(lab, engine, "steady", concurrency=20, result_max_bytes=1000)
        yield engine
    engine.close()


@pytest.fixture
def until(tmp_path: Path) -> Path:
    """The file that waiting handlers wait for."""
    return tmp_path / "until"


# Executing --------------------------------------------------------------------------------------

# HAND-01, CLI-06
def test_a_handler_is_told_its_task_attempt_worker_queue_and_payload(
        busy_engine: Engine) -> None:
    task_id = busy_engine.submit(task_type="describe_context", payload={"a": "ä"})
    task = wait_for_status(busy_engine, task_id)
    assert (task.status, task.result) == ("succeeded", {
        "task_id": task_id, "attempt": 1, "worker_id": "steady", "queue": "default",
        "payload": {"a": "ä"}})


# RETRY-09
def test_an_unknown_task_type_is_one_attempt_and_never_executed(busy_engine: Engine) -> None:
    task = wait_for_status(busy_engine, busy_engine.submit(task_type="os.system"))
    assert (task.status, task.attempt, task.error_message, task.retryable) == (
        "dead_lettered", 1, "unknown_task_type:os.system", False)


# WORK-05
@pytest.mark.parametrize("task_type", ["wait_on_loop", "wait_in_thread"])
def test_an_attempt_ends_at_its_time_limit_and_may_be_retried(
        busy_engine: Engine, until: Path, task_type: str) -> None:
    task = wait_for_status(busy_engine, busy_engine.submit(
        task_type=task_type, payload={"until": str(until)}, timeout_ms=50, max_attempts=2))
    until.touch()
    assert (task.status, task.attempt, task.error_class, task.retryable) == (
        "dead_lettered", 2, "TimeoutError", True)


# WORK-06
def test_a_late_return_is_ignored(busy_engine: Engine, until: Path) -> None:
    task_id = busy_engine.submit(task_type="wait_in_thread", payload={"until": str(until)},
                                 timeout_ms=50, max_attempts=1)
    wait_for_status(busy_engine, task_id)
    before = busy_engine.record(task_id)
    until.touch()
    after_it = busy_engine.submit(task_type="fibonacci_task")  # needs a thread, too
    wait_for_status(busy_engine, after_it)
    assert busy_engine.record(task_id) == before
    assert not busy_engine.redis.exists(busy_engine.keys.result_prefix + task_id)


# RETRY-08
def test_a_result_that_is_not_json_is_a_permanent_failure(busy_engine: Engine) -> None:
    task = wait_for_status(busy_engine, busy_engine.submit(
        task_type="probe_task", payload={"steps": [{"return_unserialisable": True}]}))
    assert (task.status, task.attempt, task.error_class) == ("dead_lettered", 1, "ResultNotJson")


# HAND-05
def test_a_result_that_is_too_long_is_cut_and_marked_and_is_valid_json(
        busy_engine: Engine) -> None:
    task_id = busy_engine.submit(task_type="probe_task",
                                 payload={"steps": [{"return_bytes": 5000}]})
    task = wait_for_status(busy_engine, task_id)
    assert task.status == "succeeded"
    assert (task.result["truncated"], task.result["bytes"]) == (True, 5002)
    assert busy_engine.redis.strlen(busy_engine.keys.result_prefix + task_id) <= 1000


# HAND-03, RETRY-08
@pytest.mark.parametrize(("failure", "error_class", "attempts"), [
    ("retryable", "RetryableError", 3), ("permanent", "PermanentError", 1),
    ("unknown", "RuntimeError", 1)])
def test_a_retryable_failure_is_tried_again_and_any_other_is_not(
        busy_engine: Engine, failure: str, error_class: str, attempts: int) -> None:
    task = wait_for_status(busy_engine, busy_engine.submit(
        task_type="probe_task", payload={"steps": [{"fail": failure}]}, max_attempts=3))
    assert (task.status, task.attempt, task.error_class) == (
        "dead_lettered", attempts, error_class)


def test_a_delayed_task_of_another_queue_is_promoted_by_this_queues_leader(
        busy_engine: Engine) -> None:
    task_id = busy_engine.submit(queue="elsewhere", delay_ms=1)
    assert wait_for_status(busy_engine, task_id, "queued").attempt == 1


def test_a_sync_handler_past_its_limit_keeps_its_slot_until_its_thread_ends(
        lab: Lab, engine: Engine, until: Path) -> None:
    start_worker(lab, engine, "narrow", concurrency=1, visibility_timeout_s=30)
    stuck = engine.submit(task_type="wait_in_thread", payload={"until": str(until)},
                          timeout_ms=50, max_attempts=1)
    assert wait_for_status(engine, stuck).error_class == "TimeoutError"
    waiting = engine.submit()
    wait_for_worker(engine, "narrow", "overdue")
    assert engine.status(waiting) == "queued"
    until.touch()
    wait_for_worker(engine, "narrow", "ready")
    assert wait_for_status(engine, waiting).status == "succeeded"


@pytest.mark.parametrize(("task_type", "error_class"), [
    ("cancels_itself", "CancelledError"), ("exits", "SystemExit"),
    ("exits_in_thread", "SystemExit"), ("stops_iterating", "StopIteration"),
    ("returns_nan", "ResultNotJson")])
def test_whatever_a_handler_raises_ends_its_attempt_for_good_and_nothing_else(
        busy_engine: Engine, task_type: str, error_class: str) -> None:
    task = wait_for_status(busy_engine, busy_engine.submit(task_type=task_type))
    assert (task.status, task.attempt, task.error_class) == ("dead_lettered", 1, error_class)
    assert wait_for_status(busy_engine, busy_engine.submit()).worker_id == "steady"


def test_a_handler_that_swallows_its_cancellation_is_settled_at_its_limit_all_the_same(
        lab: Lab, engine: Engine, until: Path, tmp_path: Path) -> None:
    start_worker(lab, engine, concurrency=4)
    log = tmp_path / "starts"
    task = wait_for_status(engine, engine.submit(
        task_type="never_listens", payload={"until": str(until), "log": str(log)},
        timeout_ms=50, max_attempts=3))
    until.touch()
    assert (task.status, task.attempt, task.error_class) == ("dead_lettered", 3, "TimeoutError")
    assert log.read_text().split() == ["1", "2", "3"]


# WORK-08
def test_a_worker_whose_every_slot_stays_overdue_ends_with_its_code(
        lab: Lab, engine: Engine, until: Path) -> None:
    worker = start_worker(lab, engine, "stuck", concurrency=1)
    task_id = engine.submit(task_type="wait_in_thread", payload={"until": str(until)},
                            timeout_ms=50, max_attempts=1)
    worker.wait(LIMIT_S)
    until.touch()
    assert worker.exit_code == OVERDUE_EXIT_CODE
    assert says(worker, "all 1 slots have been held for 1 s by handlers past their time limit")
    assert engine.status(task_id) == "dead_lettered"
    assert (engine.pending(), engine.consumers()) == ({}, set())


# CANCEL-03
def test_a_handler_that_is_awaited_is_cancelled_while_it_runs(
        busy_engine: Engine, until: Path) -> None:
    task_id = busy_engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(busy_engine, task_id, "running")
    assert busy_engine.cancel(task_id) == "requested"
    task = wait_for_status(busy_engine, task_id)
    assert (task.status, task.attempt, task.error_class, task.retryable) == (
        "cancelled", 1, "Cancelled", False)


# CANCEL-04
def test_a_handler_in_a_thread_runs_out_and_its_success_stands(
        busy_engine: Engine, until: Path) -> None:
    task_id = busy_engine.submit(task_type="wait_in_thread", payload={"until": str(until)})
    wait_for_status(busy_engine, task_id, "running")
    assert busy_engine.cancel(task_id) == "requested"
    on_loop = busy_engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(busy_engine, on_loop, "running")
    busy_engine.cancel(on_loop)
    assert wait_for_status(busy_engine, on_loop).status == "cancelled"  # told in the same beat
    until.touch()
    assert wait_for_status(busy_engine, task_id).status == "succeeded"


# WORK-09
def test_a_handler_that_waits_keeps_no_other_slot_from_working(
        busy_engine: Engine, until: Path) -> None:
    waiting = [busy_engine.submit(task_type=name, payload={"until": str(until)})
               for name in ("wait_in_thread", "wait_on_loop")]
    for task_id in waiting:
        wait_for_status(busy_engine, task_id, "running")
    for name in ("describe_context", "describe_context_in_thread"):
        assert wait_for_status(busy_engine, busy_engine.submit(task_type=name)).status == \
            "succeeded"
    assert {busy_engine.queue.get(task_id).status for task_id in waiting} == {"running"}
    until.touch()


# SCHED-05
@pytest.mark.parametrize("off_s", [-3600, 3600])
def test_a_worker_whose_clock_is_off_by_an_hour_changes_nothing(
        lab: Lab, engine: Engine, off_s: int) -> None:
    """Nothing of what is due, lives for a time or is retried is early, late or expired."""
    off = (f"import time; told = time.time; time.time = lambda: told() + {off_s}; "
           "from dtq_reference.cli import main; main(['worker', 'run'])")
    process = lab.start(f"off-{off_s}", [sys.executable, "-c", off], role="worker", environment={
        "DTQ_REDIS_URL": engine.settings.redis_url, "DTQ_KEY_PREFIX": engine.keys.prefix,
        "DTQ_RETRY_BASE_DELAY": "0.3"})
    wait_for(lambda: says(process, "is ready"), reason="the worker", limit_s=LIMIT_S)
    due = engine.submit(task_type="echo_task", delay_ms=500)
    mortal = engine.submit(task_type="echo_task", metadata={"ttl_seconds": 600})
    tried = engine.submit(task_type="flaky_task", payload={"failures": 1})
    for task_id in (due, mortal, tried):
        task = wait_for_status(engine, task_id)
        assert task.status == "succeeded"
        assert task.available_at <= task.started_at < task.available_at + 60_000
        assert task.started_at <= task.finished_at < task.created_at + 60_000
    process.terminate()
    process.wait(LIMIT_S)


# WORK-11
def test_with_a_pool_a_sync_handler_can_be_killed_and_costs_no_slot(
        lab: Lab, engine: Engine, until: Path) -> None:
    worker = start_worker(lab, engine, "pooled", concurrency=2, process_pool=True)
    other = engine.submit(task_type="wait_in_thread", payload={"until": str(until)})
    late = wait_for_status(engine, engine.submit(
        task_type="sync_probe_task", payload={"steps": [{"busy": 60_000}]}, timeout_ms=100,
        max_attempts=2))
    assert (late.status, late.attempt, late.error_class) == ("dead_lettered", 2, "TimeoutError")
    died = wait_for_status(engine, engine.submit(task_type="sync_probe_task", payload={
        "steps": [{"kill": True, "until_attempt": 1}, {"exit": 3, "until_attempt": 2}]}))
    assert (died.status, died.attempt, died.error_class) == ("succeeded", 3, None)
    assert died.result["worker_id"] == "pooled"
    assert died.result["pid"] not in (worker.pid, heartbeat_of(worker).pid)
    until.touch()
    assert wait_for_status(engine, other).result == {"attempt": 1}
    worker.terminate()
    worker.wait(LIMIT_S)
    assert worker.exit_code == 0
    wait_for(lambda: not psutil.pid_exists(died.result["pid"]), reason="the child to end",
             limit_s=LIMIT_S)


def test_with_a_signing_key_nothing_is_executed_that_was_not_signed(
        lab: Lab, engine: Engine) -> None:
    signer = engine.with_settings(signing_key="the key")
    start_worker(lab, engine, signing_key="the key")
    good, unsigned = signer.submit(), engine.submit(task_type="probe_task")
    forged = engine.with_settings(signing_key="another").submit(task_type="probe_task")
    assert wait_for_status(engine, good).status == "succeeded"
    for task_id, reason in ((unsigned, "is missing"), (forged, "is wrong")):
        task = wait_for_status(engine, task_id)
        assert (task.status, task.attempt, task.error_class, task.retryable) == (
            "dead_lettered", 1, "BadSignature", False)
        assert reason in str(task.error_message)
    assert not {line.task_id for line in lab.witness_lines()} & {unsigned, forged}


# HAND-06
def test_the_completion_hook_hears_once_of_each_finished_task_and_not_of_a_retry(
        lab: Lab, engine: Engine, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    worker = start_worker(lab, engine, heard=heard)
    good = engine.submit(task_type="flaky_task", payload={"failures": 1})
    bad = engine.submit(task_type="always_fail_task", max_attempts=2)
    for task_id in (good, bad):
        wait_for_status(engine, task_id)
    worker.terminate()
    worker.wait(LIMIT_S)
    assert sorted(heard.read_text().splitlines()) == sorted(
        [f"{good} succeeded", f"{bad} dead_lettered"])


def test_a_worker_serves_its_metrics_on_a_port_of_its_own(lab: Lab, engine: Engine) -> None:
    _held, port = free_port()
    start_worker(lab, engine, "counted", worker_metrics_port=port)
    wait_for_status(engine, engine.submit())

    def text() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as reply:
            return str(reply.read().decode())

    wait_for(lambda: 'dtq_tasks_succeeded_total{queue="default",task_type="echo_task"} 1.0'
             in text(), reason="the success to be counted", limit_s=LIMIT_S)
    assert 'dtq_tasks_started_total{queue="default",task_type="echo_task"} 1.0' in text()
    assert 'dtq_worker_inflight{worker_id="counted"} 0.0' in text()
    assert 'dtq_redis_operations_total{operation="renew",result="ok"}' in text()


# Stopping ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_finishes_what_it_started_takes_nothing_more_and_exits_with_0(
        lab: Lab, engine: Engine, until: Path, signal_number: signal.Signals) -> None:
    worker = start_worker(lab, engine, "leaver", concurrency=2)
    started = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(engine, started, "running")
    worker.send(signal_number, asked="terminate")
    wait_for_worker(engine, "leaver", "draining")
    too_late = engine.submit()
    until.touch()
    worker.wait(LIMIT_S)
    assert worker.exit_code == 0
    assert engine.status(started) == "succeeded"
    assert engine.status(too_late) == "queued"
    assert (engine.pending(), engine.consumers()) == ({}, set())
    assert engine.redis.hget(engine.keys.worker_prefix + "leaver", "status") == b"stopped"


def test_beyond_the_drain_limit_what_it_started_is_left_to_be_redelivered(
        lab: Lab, engine: Engine, until: Path) -> None:
    worker = start_worker(lab, engine, drain_timeout_s=0.2)
    payload = {"until": str(until)}
    started = [engine.submit(task_type=task_type, payload=payload)
               for task_type in ("wait_on_loop", "wait_in_thread")]
    for task_id in started:
        wait_for_status(engine, task_id, "running")
    worker.terminate()
    worker.wait(LIMIT_S)
    assert worker.exit_code == 0
    assert set(engine.pending()) == set(started)
    until.touch()
    start_worker(lab, engine)
    for task_id in started:
        assert wait_for_status(engine, task_id).result == {"attempt": 2}


def test_a_drain_limit_of_nought_gives_back_and_exits(
        lab: Lab, engine: Engine, until: Path) -> None:
    worker = start_worker(lab, engine, drain_timeout_s=0)
    task_id = engine.submit(task_type="wait_in_thread", payload={"until": str(until)})
    wait_for_status(engine, task_id, "running")
    worker.terminate()
    worker.wait(LIMIT_S)
    until.touch()
    assert worker.exit_code == 0
    assert set(engine.pending()) == {task_id}


# STOP-06
def test_a_second_signal_ends_it_at_once(lab: Lab, engine: Engine, until: Path) -> None:
    worker = start_worker(lab, engine, "hasty", drain_timeout_s=3600)
    task_id = engine.submit(task_type="wait_in_thread", payload={"until": str(until)})
    wait_for_status(engine, task_id, "running")
    worker.terminate()
    wait_for_worker(engine, "hasty", "draining")
    worker.terminate()
    worker.wait(LIMIT_S)
    assert worker.exit_code == 1
    assert set(engine.pending()) == {task_id}


def test_of_two_processes_of_one_worker_id_the_older_drains(
        lab: Lab, engine: Engine, until: Path) -> None:
    older = start_worker(lab, engine, "same")
    started = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(engine, started, "running")
    newer = start_worker(lab, engine, "same")
    wait_for(lambda: says(older, "draining: 1 started"), reason="the older to drain",
             limit_s=LIMIT_S)
    assert wait_for_status(engine, engine.submit()).status == "succeeded"
    until.touch()
    older.wait(LIMIT_S)
    assert older.exit_code == 0
    assert wait_for_status(engine, started).result == {"attempt": 1}
    assert newer.alive
    assert engine.redis.smembers(engine.keys.workers) == {b"same"}


# Trouble ----------------------------------------------------------------------------------------

@pytest.fixture
def worker(lab: Lab, engine: Engine) -> LabProcess:
    return start_worker(lab, engine, "tough")


def still_works(engine: Engine, worker: LabProcess) -> bool:
    task = wait_for_status(engine, engine.submit())
    return worker.alive and task.status == "succeeded" and task.worker_id == "tough"


# WORK-03
def test_a_duty_that_crashes_is_logged_and_started_again(
        engine: Engine, worker: LabProcess) -> None:
    heartbeat_of(worker).kill()
    wait_for(lambda: says(worker, "the heartbeat crashed and is started again"),
             reason="the heartbeat to crash", limit_s=LIMIT_S)
    assert still_works(engine, worker)
    assert heartbeat_of(worker).is_running()


def test_a_heartbeat_that_cannot_renew_says_so_and_goes_on(
        engine: Engine, worker: LabProcess) -> None:
    key = engine.keys.worker_prefix + "tough"
    engine.redis.set(key, "not a hash")
    wait_for(lambda: says(worker, "renew: ScriptError"), reason="a beat to fail", limit_s=LIMIT_S)
    engine.redis.delete(key)
    wait_for(lambda: engine.redis.hget(key, "incarnation"), reason="the worker to be back",
             limit_s=LIMIT_S)
    assert still_works(engine, worker)


def test_groups_that_are_lost_while_every_slot_is_full_are_made_again(
        lab: Lab, engine: Engine, until: Path) -> None:
    worker = start_worker(lab, engine, concurrency=1)
    task_id = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(engine, task_id, "running")
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, GROUP)
    wait_for(lambda: says(worker, "NOGROUP"), reason="a beat to miss its group", limit_s=LIMIT_S)
    wait_for(lambda: engine.redis.xinfo_groups(engine.keys.streams("default")[0]),
             reason="the groups to be back", limit_s=LIMIT_S)
    until.touch()
    assert wait_for_status(engine, task_id).status == "succeeded"
    worker.terminate()
    worker.wait(LIMIT_S)
    assert worker.exit_code == 0


def test_a_worker_whose_hash_was_lost_says_hello_again(
        engine: Engine, worker: LabProcess) -> None:
    before = engine.redis.hget(engine.keys.worker_prefix + "tough", "incarnation")
    engine.redis.delete(engine.keys.worker_prefix + "tough", engine.keys.workers)
    assert still_works(engine, worker)
    assert engine.redis.hget(engine.keys.worker_prefix + "tough", "incarnation") == before


# WORK-16
def test_a_server_that_lost_its_scripts_needs_no_restart_of_the_worker(
        engine: Engine, worker: LabProcess) -> None:
    engine.redis.script_flush()
    assert still_works(engine, worker)


# WORK-17
def test_lost_groups_are_made_anew_and_nothing_that_waited_is_skipped(
        engine: Engine, worker: LabProcess) -> None:
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, GROUP)
    assert still_works(engine, worker)


def test_a_lost_installation_is_made_anew(engine: Engine, worker: LabProcess) -> None:
    engine.redis.delete(*engine.dump())
    assert still_works(engine, worker)


def test_a_killed_workers_task_is_executed_again_by_another(
        lab: Lab, engine: Engine, until: Path, worker: LabProcess) -> None:
    task_id = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
    wait_for_status(engine, task_id, "running")
    worker.kill()
    until.touch()
    start_worker(lab, engine)
    assert wait_for_status(engine, task_id).result == {"attempt": 2}


# WORK-15
def test_a_broker_that_was_killed_and_restarted_needs_no_restart_of_the_worker(
        tmp_path: Path, until: Path) -> None:
    with Lab(tmp_path / "logs", persistence="always") as lab:
        engine = Engine(lab.broker.url, "t:")
        worker = start_worker(lab, engine, "tough", visibility_timeout_s=20)
        before = engine.submit(task_type="wait_on_loop", payload={"until": str(until)})
        wait_for_status(engine, before, "running")
        lab.broker.kill()
        with pytest.raises((DtqError, BrokerUnreachable)):
            engine.queue.do(engine.queue.operations.get(before), limit_s=0.1)
        until.touch()
        lab.broker.restart()
        assert wait_for_status(engine, before).result == {"attempt": 1}
        assert still_works(engine, worker)
        worker.terminate()
        worker.wait(LIMIT_S)
        assert worker.exit_code == 0
        engine.close()

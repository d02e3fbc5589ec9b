"""The script `submit`: what is kept of a task; that its id, or its key, makes it one task; and how
many a queue holds."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from dtq_reference.errors import DtqError
from dtq_reference.operations import Again, Submitted

from tests.reference.engine import Engine, failed, refused, succeeded

TASK_ID = "0123456789abcdef" * 2


def test_a_task_waits_in_the_stream_of_its_queue_and_priority(engine: Engine) -> None:
    submitted = engine.queue.submit(task_type="echo_task", queue="mail", priority=7,
                                    payload={"to": "ü"}, max_attempts=3, timeout_ms=5000,
                                    metadata={"m": 1})
    assert (submitted.status, submitted.duplicate) == ("queued", False)
    task_id = submitted.task_id
    (_, fields), = engine.redis.xrange(engine.keys.stream("mail", 7))
    assert {name.decode(): value.decode() for name, value in fields.items()} == {
        "task_id": task_id, "queue": "mail", "task_type": "echo_task", "payload": '{"to":"ü"}',
        "attempt": "1", "max_attempts": "3", "priority": "7", "timeout_ms": "5000",
        "idempotency_key": ""}
    record = engine.record(task_id)
    assert (record["status"], record["metadata"], record["attempt"]) == ("queued", '{"m":1}', "1")
    assert engine.redis.smembers(engine.keys.queues) == {b"mail"}


def test_a_delayed_task_has_an_appointment_and_no_entry(engine: Engine) -> None:
    submitted = engine.queue.submit(task_type="echo_task", delay_ms=60_000)
    assert submitted.status == "pending"
    task_id = submitted.task_id
    record = engine.record(task_id)
    assert engine.redis.zscore(engine.keys.schedule, task_id) == int(record["available_at"])
    assert int(record["available_at"]) == int(record["created_at"]) + 60_000
    assert engine.redis.xlen(engine.keys.stream("default", 5)) == 0


def test_the_longest_delay_and_a_large_payload_are_kept_as_they_are(engine: Engine) -> None:
    ten_years_ms = 10 * 365 * 86_400_000
    task_id = engine.submit(delay_ms=ten_years_ms, payload={"x": "y" * 200_000})
    task = engine.queue.get(task_id)
    assert task is not None
    assert task.available_at == task.created_at + ten_years_ms
    assert task.payload == {"x": "y" * 200_000}


def test_a_known_id_is_answered_as_the_first_time_whatever_became_of_the_task(
        engine: Engine) -> None:
    worker = engine.worker()
    first = engine.queue.submit(task_type="echo_task", task_id=TASK_ID)
    assert first == Submitted(TASK_ID, "queued")
    taken = engine.take_one(worker)
    for _ in range(2):
        before = engine.dump()
        again = engine.queue.submit(task_type="sleep_task", task_id=TASK_ID, delay_ms=5)
        assert again == Again(TASK_ID, "queued")
        assert msgspec.json.encode(again) == msgspec.json.encode(first)
        assert engine.dump() == before
        engine.settle(worker, succeeded(taken))


def test_the_list_of_recent_tasks_is_bounded(engine: Engine) -> None:
    engine.redis.zadd(engine.keys.recent, {f"{number:032x}": number for number in range(10_001)})
    task_id = engine.submit()
    assert engine.redis.zcard(engine.keys.recent) == 10_000
    assert engine.tasks(limit=1)[0].task_id == task_id


def test_the_time_to_live_counts_from_the_acceptance(engine: Engine) -> None:
    record = engine.record(engine.submit(metadata={"ttl_seconds": 1.5}, delay_ms=1000))
    assert int(record["expires_at"]) == int(record["created_at"]) + 1500


# Idempotency keys -------------------------------------------------------------------------------

def succeeds(engine: Engine, task_id: str) -> None:
    worker = engine.worker()
    engine.settle(worker, succeeded(engine.take_one(worker)))


def fails(engine: Engine, task_id: str) -> None:
    quiet, worker = engine.with_settings(dlq_enabled=False), engine.worker()
    quiet.settle(worker, failed(quiet.take_one(worker), retryable=False))


def is_dead_lettered(engine: Engine, task_id: str) -> None:
    worker = engine.worker()
    engine.settle(worker, failed(engine.take_one(worker), retryable=False))


def is_cancelled(engine: Engine, task_id: str) -> None:
    engine.cancel(task_id)


def expires(engine: Engine, task_id: str) -> None:
    engine.expire(task_id)
    engine.take(engine.worker())


ENDS = [(succeeds, "succeeded", "completed"), (fails, "failed", "failed"),
        (is_dead_lettered, "dead_lettered", "failed"), (is_cancelled, "cancelled", "failed"),
        (expires, "expired", "failed")]


# IDEM-13
def test_the_first_submission_of_a_key_leaves_a_record_that_does_not_expire(
        engine: Engine) -> None:
    task_id = engine.submit(idempotency_key="k")
    record = engine.key_record("k")
    assert (record["task_id"], record["state"]) == (task_id, "processing")
    assert record["updated_at"] == int(engine.record(task_id)["created_at"])
    assert engine.redis.ttl(engine.keys.idempotency_prefix + "default:k") == -1
    (_, entry), = engine.redis.xrange(engine.keys.stream("default", 5))
    assert entry[b"idempotency_key"] == b"k"


@pytest.mark.parametrize("state", ["pending", "queued", "running", "retrying"])
def test_a_key_whose_task_is_unfinished_is_refused_with_that_task(
        engine: Engine, state: str) -> None:
    if state == "retrying":
        task_id = engine.wait_for_retry(idempotency_key="k")
    else:
        task_id = engine.submit(idempotency_key="k", delay_ms=9999 if state == "pending" else 0)
    if state == "running":
        engine.take_one(engine.worker())
    assert (engine.status(task_id), engine.key_record("k")["state"]) == (state, "processing")
    before = engine.dump()
    with refused("IDEMPOTENCY_IN_PROGRESS", task_id, task_id=task_id):
        engine.submit(idempotency_key="k", payload={"another": 1})
    assert engine.dump() == before


@pytest.mark.parametrize(("end", "status", "state"), ENDS)
def test_a_key_whose_task_has_ended_is_answered_with_that_task_even_by_a_full_queue(
        engine: Engine, end: Callable[[Engine, str], None], status: str, state: str) -> None:
    engine = engine.with_settings(max_queue_depth=1)
    task_id = engine.submit(idempotency_key="k", metadata={"ttl_seconds": 60})
    end(engine, task_id)
    record = engine.key_record("k")
    assert (record["task_id"], record["state"]) == (task_id, state)
    ttl_s = engine.redis.ttl(engine.keys.idempotency_prefix + "default:k")
    assert 0 < ttl_s <= engine.settings.idem_ttl_s
    engine.submit()
    with refused("QUEUE_FULL"):
        engine.submit(idempotency_key="another")
    before = engine.dump()
    assert engine.queue.submit(task_type="sleep_task", idempotency_key="k") == Submitted(
        task_id, status, duplicate=True)
    assert engine.dump() == before


def test_a_key_is_of_one_queue(engine: Engine) -> None:
    first = engine.submit(idempotency_key="k")
    second = engine.submit(idempotency_key="k", queue="mail")
    assert engine.key_record("k")["task_id"] == first
    assert engine.key_record("k", "mail")["task_id"] == second


# IDEM-07
def test_a_record_of_a_vanished_task_is_replaced(engine: Engine) -> None:
    vanished = engine.submit(idempotency_key="k")
    engine.redis.delete(engine.keys.task_prefix + vanished)
    task_id = engine.submit(idempotency_key="k")
    assert engine.key_record("k")["task_id"] == task_id != vanished


def test_the_task_id_is_looked_at_before_the_key(engine: Engine) -> None:
    again = Again(TASK_ID, "queued", duplicate=False)
    first = engine.queue.submit(task_type="t", task_id=TASK_ID, idempotency_key="k")
    assert first == Submitted(TASK_ID, "queued", duplicate=False)
    assert engine.queue.submit(task_type="t", task_id=TASK_ID, idempotency_key="k") == again
    succeeds(engine, TASK_ID)
    assert engine.queue.submit(task_type="t", task_id=TASK_ID, idempotency_key="k") == again


# IDEM-12
@pytest.mark.parametrize(("end", "status", "state"), ENDS)
def test_a_step_changes_a_record_only_if_it_names_its_task(
        engine: Engine, end: Callable[[Engine, str], None], status: str, state: str) -> None:
    task_id = engine.submit(idempotency_key="k", metadata={"ttl_seconds": 60})
    key = engine.keys.idempotency_prefix + "default:k"
    foreign = json.dumps({"task_id": TASK_ID, "state": "processing", "updated_at": 1})
    engine.redis.set(key, foreign)
    end(engine, task_id)
    assert engine.status(task_id) == status
    assert (engine.redis.get(key), engine.redis.ttl(key)) == (foreign.encode(), -1)


def test_no_end_brings_back_a_record_that_is_gone(engine: Engine) -> None:
    task_id = engine.submit(idempotency_key="k")
    engine.redis.delete(engine.keys.idempotency_prefix + "default:k")
    succeeds(engine, task_id)
    assert engine.key_record("k") == {}


def together(engine: Engine, number: int, **fields: Any) -> Counter[str]:
    """Submit from as many threads at once; what became of the submissions."""
    start = threading.Barrier(number)

    def submit(_: int) -> str:
        another = engine.with_settings(max_queue_depth=engine.settings.max_queue_depth)
        try:
            start.wait()
            another.submit(**fields)
        except DtqError as error:
            return error.code
        finally:
            another.close()
        return "accepted"

    with ThreadPoolExecutor(number) as threads:
        return Counter(threads.map(submit, range(number)))


def test_however_many_submit_a_key_at_once_there_is_one_task(engine: Engine) -> None:
    assert together(engine, 12, idempotency_key="k") == {
        "accepted": 1, "IDEMPOTENCY_IN_PROGRESS": 11}
    assert len(engine.tasks()) == engine.redis.xlen(engine.keys.stream("default", 5)) == 1


# The depth of a queue ---------------------------------------------------------------------------

def test_the_limit_of_the_depth_is_exact_however_many_submit_at_once(engine: Engine) -> None:
    engine = engine.with_settings(max_queue_depth=5)
    engine.submit(delay_ms=60_000)
    engine.submit(priority=9)
    assert together(engine, 12) == {"accepted": 3, "QUEUE_FULL": 9}
    assert engine.depth() == 5


def test_unfinished_tasks_count_where_ever_they_wait_and_finished_ones_do_not(
        engine: Engine) -> None:
    engine = engine.with_settings(max_queue_depth=4)
    engine.bury()
    running = engine.submit(priority=9)
    worker = engine.worker()
    taken = engine.take_one(worker)
    engine.wait_for_retry()
    engine.submit(delay_ms=60_000)
    engine.released()
    assert engine.depth() == 4
    before = engine.dump()
    with refused("QUEUE_FULL", "Queue default has 4 unfinished tasks"):
        engine.submit()
    assert engine.dump() == before
    engine.submit(queue="another")
    engine.settle(worker, succeeded(taken))
    assert engine.status(running) == "succeeded"
    engine.submit()


def test_only_submissions_are_refused_by_a_full_queue(engine: Engine) -> None:
    dead = engine.bury()
    engine = engine.with_settings(max_queue_depth=1)
    worker = engine.worker()
    task_id = engine.submit()
    assert engine.settle(worker, failed(engine.take_one(worker))) == ["retrying"]
    engine.make_due(task_id)
    assert engine.promote().promoted == 1
    engine.take_one(worker)
    engine.release(worker)
    engine.requeue(dead)
    assert (engine.status(task_id), engine.status(dead), engine.depth()) == ("queued", "queued", 2)


def test_within_one_call_each_submission_counts_and_is_answered_by_itself(
        engine: Engine) -> None:
    engine = engine.with_settings(max_queue_depth=2)
    answers = engine.do(engine.operations.submit_all([
        {"task_type": "t", "idempotency_key": "k"}, {"task_type": "t", "idempotency_key": "k"},
        {"task_type": "t", "priority": 10}, {"task_type": "t", "delay_ms": 60_000},
        {"task_type": "t"}, {"task_type": "t", "queue": "mail"}]))
    assert [each.code if isinstance(each, DtqError) else each.status for each in answers] == [
        "queued", "IDEMPOTENCY_IN_PROGRESS", "INVALID_TASK", "pending", "QUEUE_FULL", "queued"]


# Events and signatures --------------------------------------------------------------------------

def test_a_task_that_may_run_now_is_announced_and_one_for_later_is_not(engine: Engine) -> None:
    ear = engine.listen()
    task_id = engine.submit(queue="mail")
    engine.submit(delay_ms=60_000)
    (event,) = ear.heard()
    assert (event["type"], event["task_id"], event["queue"], event["task_type"], event["attempt"],
            event["worker_id"]) == ("TASK_QUEUED", task_id, "mail", "echo_task", 1, "")
    assert event["ts"] == int(engine.record(task_id)["created_at"])


def test_an_entry_is_signed_where_there_is_a_key_to_sign_with(engine: Engine) -> None:
    engine.submit()
    engine.with_settings(signing_key="secret").submit()
    plain, signed = (fields for _, fields in engine.redis.xrange(engine.keys.stream("default", 5)))
    assert b"signature" not in plain
    assert len(signed[b"signature"]) == 64

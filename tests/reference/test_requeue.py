"""The script `requeue`: a dead-lettered task lives again from its first attempt."""

from __future__ import annotations

import pytest

from tests.reference.engine import ACTOR, Engine, failed, refused, succeeded


def test_a_requeued_task_begins_anew_on_a_new_entry_and_its_letter_is_gone(
        engine: Engine) -> None:
    task_id = engine.bury(priority=8, payload={"a": 1}, max_attempts=2)
    worker = engine.worker()
    ear = engine.listen()
    engine.requeue(task_id)
    (event,) = ear.heard()
    assert (event["type"], event["task_id"], event["attempt"]) == ("TASK_QUEUED", task_id, 1)
    assert engine.letters() == []
    task = engine.queue.get(task_id)
    assert task is not None
    assert (task.status, task.attempt, task.error_class, task.finished_at, task.worker_id) == (
        "queued", 1, None, None, None)
    assert not engine.expires(task_id)
    taken = engine.take_one(worker)
    assert (taken.task_id, taken.attempt, taken.level, taken.payload) == (
        task_id, 1, 2, b'{"a":1}')
    assert engine.settle(worker, failed(taken)) == ["retrying"]


# DLV-36
def test_a_requeue_is_audited_and_sent_again_it_is_answered_with_the_state_it_finds(
        engine: Engine) -> None:
    task_id = engine.bury()
    engine.requeue(task_id)
    before = engine.dump()
    with refused("NOT_REQUEUEABLE", "is queued", status="queued"):
        engine.requeue(task_id)
    assert engine.dump() == before
    (line,) = engine.audited()
    assert (line["actor"], line["action"], line["task_id"], line["request_id"]) == (
        ACTOR.name, "requeue", task_id, ACTOR.request_id)


def test_the_newest_ten_attempts_before_are_kept_beside_the_metadata(engine: Engine) -> None:
    task_id = engine.bury(metadata={"a": "x" * 4088})
    for life in range(12):
        task = engine.queue.get(task_id)
        assert task is not None
        assert len(task.metadata.get("previous_attempts", [])) == min(life, 10)
        engine.requeue(task_id)
        worker = engine.worker(f"w{life}")
        engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    engine.requeue(task_id)
    task = engine.queue.get(task_id)
    assert task is not None
    attempts = task.metadata.pop("previous_attempts")
    assert [each["worker_id"] for each in attempts] == [f"w{life}" for life in range(2, 12)]
    assert {(each["attempt"], each["error_class"], each["error_message"]) for each in attempts} == {
        (1, "Broken", "it broke")}
    assert all(each["started_at"] <= each["finished_at"] for each in attempts)
    assert task.metadata == {"a": "x" * 4088}


def test_a_dead_letter_without_an_execution_can_be_requeued(engine: Engine) -> None:
    task_id = engine.submit(max_attempts=1)
    engine.lose_holder()
    engine.take(engine.worker())
    engine.requeue(task_id)
    taken = engine.take_one(engine.worker())
    assert (taken.attempt, taken.alone) == (1, False)


def test_what_is_not_dead_is_refused_with_its_status(engine: Engine) -> None:
    waits = engine.submit()
    with refused("NOT_REQUEUEABLE", status="queued"):
        engine.requeue(waits)
    worker = engine.worker()
    taken = engine.take_one(worker)
    with refused("NOT_REQUEUEABLE", status="running"):
        engine.requeue(waits)
    engine.settle(worker, succeeded(taken))
    with refused("NOT_REQUEUEABLE", status="succeeded"):
        engine.requeue(waits)
    assert engine.audited() == []


def test_what_was_discarded_or_trimmed_is_refused_with_its_status(engine: Engine) -> None:
    discarded = engine.bury()
    engine.discard(discarded)
    with refused("NOT_REQUEUEABLE", status="dead_lettered"):
        engine.requeue(discarded)
    trimmed = engine.bury()
    engine.with_settings(dlq_maxlen=1).bury()
    before = engine.dump()
    with refused("NOT_REQUEUEABLE", status="dead_lettered"):
        engine.requeue(trimmed)
    assert engine.dump() == before


@pytest.mark.parametrize("task_id", ["0" * 32, "", "x", "\udcff"])
def test_what_is_not_known_is_not_found(engine: Engine, task_id: str) -> None:
    engine.bury()
    before = engine.dump()
    with refused("TASK_NOT_FOUND"):
        engine.requeue(task_id)
    assert engine.dump() == before


# DLQ-12
def test_an_orphan_is_not_found(engine: Engine) -> None:
    orphan = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + orphan)
    engine.take(engine.worker())
    with refused("TASK_NOT_FOUND"):
        engine.requeue(orphan)
    assert engine.letters() == [orphan]


# Its key ----------------------------------------------------------------------------------------

def key(engine: Engine) -> str:
    return engine.keys.idempotency_prefix + "default:k"


# IDEM-14
@pytest.mark.parametrize("is_absent", [False, True])
def test_the_record_of_its_key_says_processing_again_without_an_expiry_and_is_restored(
        engine: Engine, is_absent: bool) -> None:
    task_id = engine.bury(idempotency_key="k")
    assert engine.key_record("k")["state"] == "failed"
    if is_absent:
        engine.redis.delete(key(engine))
    engine.requeue(task_id)
    record = engine.key_record("k")
    assert (record["task_id"], record["state"]) == (task_id, "processing")
    assert engine.redis.ttl(key(engine)) == -1
    worker = engine.worker()
    engine.settle(worker, succeeded(engine.take_one(worker)))
    assert engine.key_record("k")["state"] == "completed"


# IDEM-15
def test_it_is_refused_while_the_record_names_another_unfinished_task(engine: Engine) -> None:
    task_id = engine.bury(idempotency_key="k")
    engine.redis.delete(key(engine))
    other = engine.submit(idempotency_key="k")
    before = engine.dump()
    with refused("IDEMPOTENCY_IN_PROGRESS", other, task_id=other):
        engine.requeue(task_id)
    assert engine.dump() == before


def test_a_record_that_names_another_finished_task_is_left_alone(engine: Engine) -> None:
    task_id = engine.bury(idempotency_key="k")
    engine.redis.delete(key(engine))
    engine.cancel(engine.submit(idempotency_key="k"))
    record = engine.redis.get(key(engine))
    engine.requeue(task_id)
    assert engine.redis.get(key(engine)) == record


def test_a_record_that_names_a_vanished_task_is_replaced(engine: Engine) -> None:
    task_id = engine.bury(idempotency_key="k")
    engine.redis.delete(key(engine))
    other = engine.submit(idempotency_key="k")
    engine.cancel(other)
    engine.redis.delete(engine.keys.task_prefix + other)
    engine.requeue(task_id)
    assert engine.key_record("k")["task_id"] == task_id


# What it does not inherit -----------------------------------------------------------------------

def test_its_time_to_live_begins_anew(engine: Engine) -> None:
    task_id = engine.bury(metadata={"ttl_seconds": 60})
    engine.expire(task_id)
    before_ms = engine.now_ms()
    engine.requeue(task_id)
    assert before_ms + 60_000 <= int(engine.record(task_id)["expires_at"]) <= (
        engine.now_ms() + 60_000)
    assert engine.take_one(engine.worker()).task_id == task_id


# CANCEL-07
def test_a_request_to_cancel_does_not_outlive_it(engine: Engine) -> None:
    task_id = engine.bury()
    engine.redis.hset(engine.keys.task_prefix + task_id, "cancel_requested", 1)
    engine.requeue(task_id)
    assert engine.take_one(engine.worker()).task_id == task_id


def test_lost_holders_of_the_life_before_do_not_make_it_run_alone(engine: Engine) -> None:
    task_id = engine.lost_twice(max_attempts=3)
    assert engine.lose_holder().alone
    engine.take(engine.worker())
    assert engine.status(task_id) == "dead_lettered"
    engine.requeue(task_id)
    engine.submit()
    assert [taken.alone for taken in engine.take(engine.worker()).tasks] == [False, False]


def test_a_settlement_of_the_life_before_that_is_sent_again_does_not_end_the_new_one(
        engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    outcome = failed(engine.take_one(worker), retryable=False)
    engine.settle(worker, outcome)
    engine.requeue(task_id)
    taken = engine.take_one(worker)
    assert taken.attempt == outcome.taken.attempt == 1
    before = engine.dump()
    ear = engine.listen()
    assert engine.settle(worker, outcome) == ["dead_lettered"]
    assert (engine.dump(), ear.types()) == (before, [])
    assert engine.settle(worker, succeeded(taken)) == ["succeeded"]


def test_a_queue_that_was_forgotten_is_known_again(engine: Engine) -> None:
    task_id = engine.bury()
    engine.do(engine.operations.purge_queue("default", ACTOR))
    assert engine.do(engine.operations.queues()) == []
    engine.requeue(task_id)
    assert [each.queue for each in engine.do(engine.operations.queues())] == ["default"]
    assert engine.take_one(engine.worker()).task_id == task_id

"""The script `goodbye`: the last step of stopping leaves nothing of the worker but its hash."""

from __future__ import annotations

from tests.reference.engine import LEADER, Engine, succeeded


def test_a_worker_that_has_nothing_left_takes_its_consumer_and_its_lock_with_it(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.promote(worker)
    engine.submit()
    engine.settle(worker, succeeded(engine.take_one(worker)))
    assert engine.goodbye(worker) == "ours"
    assert engine.consumers() == set()
    assert not engine.redis.exists(engine.keys.scheduler_lock)
    assert engine.redis.smembers(engine.keys.workers) == set()
    assert engine.redis.hget(engine.keys.worker_prefix + "w", "status") == b"stopped"


def test_a_consumer_with_pending_entries_stays_and_its_work_is_redelivered(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    engine.take_one(worker)
    engine.goodbye(worker)
    assert engine.consumers() == {worker.consumer}
    engine.end_leases()
    assert engine.take_one(engine.worker("other")).attempt == 2


def test_the_lock_of_another_leader_is_left_alone(engine: Engine) -> None:
    engine.promote(LEADER)
    engine.goodbye(engine.worker())
    assert engine.redis.get(engine.keys.scheduler_lock).decode() == LEADER.consumer


def test_the_hash_of_a_successor_is_left_alone(engine: Engine) -> None:
    old = engine.worker("w")
    new = engine.worker("w")
    assert engine.goodbye(old) == "other"
    assert engine.take(new).state == "ours"
    assert engine.redis.smembers(engine.keys.workers) == {b"w"}


def test_a_worker_whose_hash_is_gone_makes_none(engine: Engine) -> None:
    worker = engine.worker()
    engine.redis.delete(engine.keys.worker_prefix + "w")
    assert engine.goodbye(worker) == "absent"
    assert not engine.redis.exists(engine.keys.worker_prefix + "w")


def test_the_end_of_a_worker_is_announced_once(engine: Engine) -> None:
    old, worker = engine.worker("w"), engine.worker("w")
    ear = engine.listen()
    for each in (old, worker, worker):
        engine.goodbye(each)
    assert [(event["type"], event["worker_id"]) for event in ear.heard()] == [
        ("WORKER_STOPPED", "w")]

"""The script `sweep`: what dead workers left behind goes, but never with work under its name."""

from __future__ import annotations

from tests.reference.engine import Engine, succeeded


# KEY-12
def test_a_consumer_with_pending_entries_is_never_deleted(engine: Engine) -> None:
    dead = engine.worker("dead")
    engine.submit()
    engine.take_one(dead)
    engine.redis.delete(engine.keys.worker_prefix + "dead")
    engine.sweep()
    assert list(engine.pending().values()) == [dead.consumer]
    engine.end_leases()
    assert engine.take_one(engine.worker()).attempt == 2


# KEY-13
def test_an_idle_consumer_goes_when_its_worker_is_gone_stopped_or_another_process(
        engine: Engine) -> None:
    gone, stopped, replaced, alive = (engine.worker(name) for name in
                                      ("gone", "stopped", "replaced", "alive"))
    for worker in (gone, stopped, replaced, alive):
        engine.submit()
        engine.settle(worker, succeeded(engine.take_one(worker)))
    engine.redis.delete(engine.keys.worker_prefix + "gone")
    engine.redis.hset(engine.keys.worker_prefix + "stopped", "status", "stopped")
    engine.worker("replaced")
    engine.sweep()
    assert engine.consumers() == {alive.consumer}
    assert engine.sweep() == 0


def test_the_consumer_of_released_work_stays(engine: Engine) -> None:
    leaver = engine.worker("leaver")
    engine.submit()
    engine.take_one(leaver)
    engine.release(leaver)
    engine.goodbye(leaver)
    engine.sweep()
    assert engine.consumers() == {"released"}
    assert engine.take_one(engine.worker()).attempt == 1


def test_a_queue_without_groups_stops_no_sweep(engine: Engine) -> None:
    engine.worker("gone")
    engine.redis.delete(engine.keys.worker_prefix + "gone", *engine.keys.streams("default"))
    engine.submit()
    assert engine.sweep() == 0
    assert engine.redis.smembers(engine.keys.workers) == set()


def test_the_names_of_workers_whose_hash_is_gone_go_too(engine: Engine) -> None:
    engine.worker("gone")
    engine.worker("alive")
    engine.redis.delete(engine.keys.worker_prefix + "gone")
    engine.sweep()
    assert engine.redis.smembers(engine.keys.workers) == {b"alive"}


def test_a_silent_worker_is_announced_once_for_each_silence(engine: Engine) -> None:
    worker = engine.worker("silent")
    key = engine.keys.worker_prefix + "silent"
    engine.worker("alive")
    engine.redis.hset(engine.keys.worker_prefix + "alive", "heartbeat_interval_s", 1000)
    ear = engine.listen()
    for last_heartbeat in (1, 2):
        engine.redis.hset(key, mapping={"last_heartbeat": last_heartbeat,
                                        "heartbeat_interval_s": "0.5"})
        engine.sweep()
        engine.sweep()
    assert [(event["type"], event["worker_id"], event["task_id"]) for event in ear.heard()] == [
        ("WORKER_STALE", "silent", "")] * 2
    engine.renew(worker)
    engine.sweep()
    assert ear.types() == []


def test_a_worker_that_said_goodbye_is_never_called_stale(engine: Engine) -> None:
    worker = engine.worker()
    engine.goodbye(worker)
    engine.redis.hset(engine.keys.worker_prefix + "w", mapping={
        "last_heartbeat": 1, "heartbeat_interval_s": 1})
    ear = engine.listen()
    engine.sweep()
    assert ear.types() == []

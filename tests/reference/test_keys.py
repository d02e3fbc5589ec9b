"""Key names: those of the contract's schema, all under the prefix."""

from __future__ import annotations

from dtq_reference.keys import Keys

from tests.reference.engine import Engine, failed, succeeded


def test_the_names_are_those_of_the_contract() -> None:
    keys = Keys("dtq:")
    assert (keys.stream("mail", 3), keys.dead_letters, keys.queues, keys.schedule, keys.task_prefix,
            keys.result_prefix, keys.worker_prefix, keys.workers, keys.recent,
            keys.scheduler_lock, keys.schedule_depth, keys.idempotency_prefix, keys.once_prefix,
            keys.paused("mail"), keys.audit, keys.events) == (
        "dtq:stream:mail:p3", "dtq:stream:dead-letter", "dtq:queues", "dtq:retry:schedule",
        "dtq:task:", "dtq:result:", "dtq:worker:", "dtq:workers", "dtq:tasks:recent",
        "dtq:lock:scheduler", "dtq:retry:depth", "dtq:idempotency:", "dtq:once:",
        "dtq:queue:mail:paused", "dtq:stream:audit", "dtq:events")


def test_streams_come_most_urgent_first() -> None:
    assert Keys("x:").streams("q") == [f"x:stream:q:p{level}" for level in range(9, -1, -1)]


# KEY-08
def test_nothing_is_written_outside_the_prefix(engine: Engine) -> None:
    foreign = set(engine.redis.keys("*"))
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
    good, again, bad = engine.take(worker).tasks
    engine.settle(worker, succeeded(good), failed(again), failed(bad, retryable=False))
    engine.promote()
    engine.goodbye(worker)
    assert {key for key in engine.redis.keys("*")
            if not key.startswith(engine.keys.prefix.encode())} <= foreign


# KEY-09
def test_two_installations_on_one_server_do_not_see_each_other(engine: Engine) -> None:
    other = Engine(engine.settings.redis_url, engine.keys.prefix + "other:")
    task_id = engine.submit()
    assert other.take(other.worker()).tasks == []
    assert other.queue.get(task_id) is None
    other.close()


def test_at_rest_only_what_the_schema_explains_is_left(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.settle(worker, succeeded(engine.take_one(worker)))
    engine.goodbye(worker)
    engine.sweep()
    keys = engine.keys
    assert set(engine.dump()) == {
        *keys.streams("default"), keys.queues, keys.recent, keys.task_prefix + task_id,
        keys.result_prefix + task_id, keys.worker_prefix + "w"}
    assert sum(map(engine.redis.xlen, keys.streams("default"))) == 0

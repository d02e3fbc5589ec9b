"""Scenes before a take: what was there, and the call that is made then."""

from __future__ import annotations

from dtq_reference.calls import Call

from tests.reference.engine import Engine


def take_new_work_with_more_behind_it(engine: Engine) -> Call:
    for priority in (3, 9, 3, 0):
        engine.submit(priority=priority)
    return engine.take_call(engine.worker(), room=3, reap=False)


def take_all_there_is(engine: Engine) -> Call:
    engine.submit()
    return engine.take_call(engine.worker(), reap=False)


def take_beside_work_in_hand(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    in_hand = engine.take_one(worker)
    engine.submit()
    return engine.take_call(worker, in_hand=[in_hand])


def take_an_ended_lease(engine: Engine) -> Call:
    engine.submit()
    engine.lose_holder()
    engine.submit()
    return engine.take_call(engine.worker())


def take_what_was_released(engine: Engine) -> Call:
    engine.submit()
    leaver = engine.worker("leaver")
    engine.take_one(leaver)
    engine.release(leaver)
    return engine.take_call(engine.worker())


def take_a_spent_budget(engine: Engine) -> Call:
    engine.submit(max_attempts=1)
    engine.lose_holder()
    engine.submit()
    return engine.take_call(engine.worker())


def take_an_orphan(engine: Engine) -> Call:
    engine.redis.delete(engine.keys.task_prefix + engine.submit())
    engine.submit()
    return engine.take_call(engine.worker())


def take_what_runs_alone(engine: Engine) -> Call:
    engine.lost_twice()
    engine.submit()
    return engine.take_call(engine.worker())


def take_before_what_runs_alone(engine: Engine) -> Call:
    engine.lost_twice(priority=3)
    engine.submit(priority=9)
    engine.submit(priority=0)
    return engine.take_call(engine.worker())


def take_after_the_group_was_made_anew(engine: Engine) -> Call:
    engine.submit()
    engine.take_one(engine.worker("holder"))
    engine.submit()
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, "workers")
    return engine.take_call(engine.worker())


def take_what_was_cancelled_meanwhile(engine: Engine) -> Call:
    task_id = engine.submit(idempotency_key="k")
    engine.lose_holder()
    engine.cancel(task_id)
    return engine.take_call(engine.worker())


def take_what_has_expired(engine: Engine) -> Call:
    engine.expire(engine.submit(metadata={"ttl_seconds": 60}))
    return engine.take_call(engine.worker())


def take_a_duplicate_entry(engine: Engine) -> Call:
    engine.submit()
    stream = engine.keys.stream("default", 5)
    engine.redis.xadd(stream, engine.redis.xrange(stream)[0][1])
    return engine.take_call(engine.worker())


def take_from_a_paused_queue(engine: Engine) -> Call:
    engine.submit()
    engine.pause()
    return engine.take_call(engine.worker())


def take_numbered_with_more_behind_it(engine: Engine) -> Call:
    for priority in (3, 9, 3, 0):
        engine.submit(priority=priority)
    return engine.take_call(engine.worker(), number=1, room=3, reap=False)


def take_numbered_beside_work_in_hand(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    first = engine.take(worker, number=1, reap=False).tasks
    engine.submit()
    engine.submit(priority=9)
    return engine.take_call(worker, in_hand=first, number=2, reap=False)


def take_numbered_what_was_released(engine: Engine) -> Call:
    engine.submit()
    leaver = engine.worker("leaver")
    engine.take_one(leaver)
    engine.release(leaver)
    engine.submit()
    return engine.take_call(engine.worker(), number=1, reap=False)


def take_numbered_what_runs_alone(engine: Engine) -> Call:
    task_id = engine.submit()
    engine.redis.hset(engine.keys.task_prefix + task_id, mapping={"losses": 2, "attempt": 3})
    engine.submit()
    return engine.take_call(engine.worker(), number=1, reap=False)


def take_numbered_after_the_group_was_made_anew(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    first = engine.take(worker, number=1, reap=False).tasks
    engine.submit()
    stream = engine.keys.stream("default", 5)
    engine.redis.xgroup_destroy(stream, "workers")
    engine.redis.xgroup_create(stream, "workers", id="0")
    return engine.take_call(worker, in_hand=first, number=2, reap=False)


def take_by_an_unknown_process(engine: Engine) -> Call:
    engine.submit()
    worker = engine.worker()
    engine.redis.delete(engine.keys.worker_prefix + worker.worker_id)
    return engine.take_call(worker)


SCENES = [take_new_work_with_more_behind_it, take_all_there_is, take_beside_work_in_hand,
          take_an_ended_lease, take_what_was_released, take_a_spent_budget, take_an_orphan,
          take_what_runs_alone, take_before_what_runs_alone, take_after_the_group_was_made_anew,
          take_what_was_cancelled_meanwhile, take_what_has_expired, take_a_duplicate_entry,
          take_from_a_paused_queue, take_numbered_with_more_behind_it,
          take_numbered_beside_work_in_hand, take_numbered_what_was_released,
          take_numbered_what_runs_alone, take_numbered_after_the_group_was_made_anew,
          take_by_an_unknown_process]

"""Scenes before a call of each script: what was there, and the call that is made then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtq_reference import calls
from dtq_reference.calls import Call
from dtq_reference.task import TaskRequest

from tests.reference import scenes_of_take
from tests.reference.engine import ACTOR, ANOTHER, LEADER, Engine, failed, succeeded

Scene = Callable[[Engine], Call]


def submit_call(engine: Engine, **fields: Any) -> Call:
    request = TaskRequest(task_type="echo_task", timeout_ms=1000, **fields)
    return calls.submit(engine.keys, engine.settings, [request])


def submit_now(engine: Engine) -> Call:
    return submit_call(engine, metadata={"ttl_seconds": 60})


def submit_later(engine: Engine) -> Call:
    return submit_call(engine, delay_ms=60_000)


def submit_with_a_key(engine: Engine) -> Call:
    return submit_call(engine, idempotency_key="k")


def submit_several_to_several_queues(engine: Engine) -> Call:
    return calls.submit(engine.keys, engine.settings, [
        TaskRequest(task_type="echo_task", timeout_ms=1000, queue=queue, idempotency_key="k")
        for queue in ("default", "mail", "default")])


def submit_over_the_depth(engine: Engine) -> Call:
    engine.submit()
    return submit_call(engine.with_settings(max_queue_depth=1))


def submit_a_key_that_is_taken(engine: Engine) -> Call:
    engine.submit(idempotency_key="k")
    return submit_with_a_key(engine)


def settle_every_way(engine: Engine) -> Call:
    worker = engine.worker()
    for max_attempts in (5, 5, 5, 1):
        engine.submit(max_attempts=max_attempts)
    good, again, permanent, last = engine.take(worker).tasks
    return engine.settle_call(worker, succeeded(good), failed(again),
                              failed(permanent, retryable=False), failed(last))


def settle_without_dead_letters(engine: Engine) -> Call:
    engine = engine.with_settings(dlq_enabled=False)
    worker = engine.worker()
    engine.submit()
    return engine.settle_call(worker, failed(engine.take_one(worker), retryable=False))


def settle_with_the_dead_letters_full(engine: Engine) -> Call:
    engine = engine.with_settings(dlq_maxlen=1)
    worker = engine.worker()
    engine.submit()
    engine.submit()
    first, second = engine.take(worker).tasks
    engine.settle(worker, failed(first, retryable=False))
    return engine.settle_call(worker, failed(second, retryable=False))


def settle_what_was_to_be_cancelled(engine: Engine) -> Call:
    worker = engine.worker()
    for task_id in (engine.submit(idempotency_key="k"), engine.submit()):
        taken = engine.take_one(worker)
        engine.cancel(task_id)
    return engine.settle_call(worker, failed(taken))


def settle_too_late(engine: Engine) -> Call:
    worker = engine.worker("zombie")
    engine.submit()
    taken = engine.take_one(worker)
    engine.end_leases()
    engine.take_one(engine.worker("heir"))
    return engine.settle_call(worker, succeeded(taken))


def renew_what_is_held_and_what_is_not(engine: Engine) -> Call:
    worker = engine.worker("zombie")
    engine.submit()
    lost = engine.take_one(worker)
    engine.end_leases()
    engine.take_one(engine.worker("heir"))
    engine.submit()
    return engine.renew_call(worker, lost, engine.take_one(worker))


def release_some_and_keep_the_started(engine: Engine) -> Call:
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
    started, *_ = engine.take(worker).tasks
    return engine.release_call(worker, started)


def release_what_was_to_be_cancelled(engine: Engine) -> Call:
    worker = engine.worker()
    task_id = engine.submit()
    engine.take(worker)
    engine.cancel(task_id)
    return engine.release_call(worker)


def promote_delayed_and_retried(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    engine.settle(worker, failed(engine.take_one(worker)))
    engine.submit(delay_ms=60_000)
    elsewhere = engine.submit(delay_ms=60_000, queue="elsewhere")
    engine.make_due(*(task.task_id for task in engine.tasks()))
    assert engine.redis.zscore(engine.keys.schedule, elsewhere) is not None
    return engine.promote_call()


def promote_what_may_not_run_any_more(engine: Engine) -> Call:
    expired = engine.submit(delay_ms=60_000, metadata={"ttl_seconds": 60})
    engine.expire(expired)
    gone = engine.submit(delay_ms=60_000)
    engine.redis.delete(engine.keys.task_prefix + gone)
    engine.make_due(expired, gone)
    return engine.promote_call()


def promote_behind_the_leader(engine: Engine) -> Call:
    engine.promote(LEADER)
    engine.make_due(engine.submit(delay_ms=60_000))
    return engine.promote_call(ANOTHER)


def register_the_first(engine: Engine) -> Call:
    return engine.hello(calls.Identity("w", "0000000a"))


def register_again_beside_another(engine: Engine) -> Call:
    engine.worker()
    return engine.hello(calls.Identity("w", "0000000a"), again=True)


def goodbye_with_nothing_left(engine: Engine) -> Call:
    worker = engine.worker()
    engine.promote(worker)
    engine.submit()
    engine.settle(worker, succeeded(engine.take_one(worker)))
    return engine.goodbye_call(worker)


def goodbye_with_work_left(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    engine.take_one(worker)
    return engine.goodbye_call(worker)


def sweep_the_dead(engine: Engine) -> Call:
    for worker_id in ("idle", "busy"):
        worker = engine.worker(worker_id)
        engine.submit()
        taken = engine.take_one(worker)
        if worker_id == "idle":
            engine.settle(worker, succeeded(taken))
        engine.redis.delete(engine.keys.worker_prefix + worker_id)
    return engine.sweep_call()


def sweep_the_silent(engine: Engine) -> Call:
    engine.worker("silent")
    engine.redis.hset(engine.keys.worker_prefix + "silent", mapping={
        "last_heartbeat": 1, "heartbeat_interval_s": 1})
    return engine.sweep_call()


def cancel_queued(engine: Engine) -> Call:
    return engine.cancel_call(engine.submit(idempotency_key="k"))


def cancel_pending(engine: Engine) -> Call:
    engine.submit(delay_ms=60_000)
    return engine.cancel_call(engine.submit(delay_ms=60_000))


def cancel_released(engine: Engine) -> Call:
    leaver = engine.worker("leaver")
    task_id = engine.submit()
    engine.take_one(leaver)
    engine.release(leaver)
    return engine.cancel_call(task_id)


def cancel_running(engine: Engine) -> Call:
    task_id = engine.submit()
    engine.take_one(engine.worker())
    return engine.cancel_call(task_id)


def cancel_finished(engine: Engine) -> Call:
    return engine.cancel_call(engine.bury())


def requeue_a_dead_letter(engine: Engine) -> Call:
    task_id = engine.bury(idempotency_key="k", metadata={"ttl_seconds": 60})
    return calls.requeue(engine.keys, engine.settings, ACTOR, task_id,
                         engine.keys.stream("default", 5))


def requeue_one_without_a_key(engine: Engine) -> Call:
    return calls.requeue(engine.keys, engine.settings, ACTOR, engine.bury(),
                         engine.keys.stream("default", 5))


def discard_one(engine: Engine) -> Call:
    engine.bury()
    return calls.discard(engine.keys, engine.settings, ACTOR, task_id=engine.bury())


def discard_all(engine: Engine) -> Call:
    engine.bury()
    engine.bury()
    return calls.discard(engine.keys, engine.settings, ACTOR)


def pause_a_queue(engine: Engine) -> Call:
    return calls.pause(engine.keys, engine.settings, ACTOR, "default", paused=True)


def resume_a_queue(engine: Engine) -> Call:
    engine.pause()
    return calls.pause(engine.keys, engine.settings, ACTOR, "default", paused=False)


def forget_an_empty_queue(engine: Engine) -> Call:
    engine.bury()
    return calls.forget_queue(engine.keys, engine.settings, "default")


def forget_a_queue_with_work(engine: Engine) -> Call:
    engine.submit(delay_ms=60_000)
    return calls.forget_queue(engine.keys, engine.settings, "default")


def read_a_task(engine: Engine) -> Call:
    return calls.read(("HGETALL", engine.keys.task_prefix + engine.submit()))


SCENES: dict[str, list[Scene]] = {
    "submit": [submit_now, submit_later, submit_with_a_key, submit_several_to_several_queues,
               submit_over_the_depth, submit_a_key_that_is_taken],
    "take": scenes_of_take.SCENES,
    "settle": [settle_every_way, settle_without_dead_letters, settle_with_the_dead_letters_full,
               settle_what_was_to_be_cancelled, settle_too_late],
    "renew": [renew_what_is_held_and_what_is_not],
    "release": [release_some_and_keep_the_started, release_what_was_to_be_cancelled],
    "promote": [promote_delayed_and_retried, promote_what_may_not_run_any_more,
                promote_behind_the_leader],
    "register": [register_the_first, register_again_beside_another],
    "goodbye": [goodbye_with_nothing_left, goodbye_with_work_left],
    "sweep": [sweep_the_dead, sweep_the_silent],
    "cancel": [cancel_queued, cancel_pending, cancel_released, cancel_running, cancel_finished],
    "requeue": [requeue_a_dead_letter, requeue_one_without_a_key],
    "discard": [discard_one, discard_all],
    "pause": [pause_a_queue, resume_a_queue],
    "forget_queue": [forget_an_empty_queue, forget_a_queue_with_work],
    "read": [read_a_task],
}

QUIET = {scenes_of_take.take_by_an_unknown_process, promote_behind_the_leader,
         scenes_of_take.take_from_a_paused_queue, register_again_beside_another,
         submit_over_the_depth, submit_a_key_that_is_taken, cancel_finished,
         forget_a_queue_with_work, read_a_task}
"""Scenes in which there is nothing to do."""

"""Every script: sent twice with the same arguments, and sent while the server is out of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from dtq_reference import calls, scripts
from dtq_reference.calls import Call
from dtq_reference.task import TaskRequest
from redis.exceptions import ResponseError

from tests.reference.engine import Engine, failed, succeeded

Scene = Callable[[Engine], Call]


def submit_now(engine: Engine) -> Call:
    return calls.submit(engine.keys, TaskRequest(task_type="echo_task", timeout_ms=1000))


def submit_later(engine: Engine) -> Call:
    return calls.submit(engine.keys,
                        TaskRequest(task_type="echo_task", timeout_ms=1000, delay_ms=60_000))


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


def take_by_an_unknown_process(engine: Engine) -> Call:
    engine.submit()
    worker = engine.worker()
    engine.redis.delete(engine.keys.worker_prefix + worker.worker_id)
    return engine.take_call(worker)


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


def promote_delayed_and_retried(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    engine.settle(worker, failed(engine.take_one(worker)))
    engine.submit(delay_ms=60_000)
    elsewhere = engine.submit(delay_ms=60_000, queue="elsewhere")
    engine.make_due(*(task.task_id for task in engine.queue.recent()))
    assert engine.redis.zscore(engine.keys.schedule, elsewhere) is not None
    return engine.promote_call()


def promote_behind_the_leader(engine: Engine) -> Call:
    engine.promote("leader")
    engine.make_due(engine.submit(delay_ms=60_000))
    return engine.promote_call("another")


def register_the_first(engine: Engine) -> Call:
    return engine.hello(calls.Identity("w", "0000000a"))


def register_again_beside_another(engine: Engine) -> Call:
    engine.worker()
    return engine.hello(calls.Identity("w", "0000000a"), again=True)


def goodbye_with_nothing_left(engine: Engine) -> Call:
    worker = engine.worker()
    engine.promote(worker.consumer)
    engine.submit()
    engine.settle(worker, succeeded(engine.take_one(worker)))
    return calls.goodbye(engine.keys, worker, "default")


def goodbye_with_work_left(engine: Engine) -> Call:
    worker = engine.worker()
    engine.submit()
    engine.take_one(worker)
    return calls.goodbye(engine.keys, worker, "default")


def sweep_the_dead(engine: Engine) -> Call:
    for worker_id in ("idle", "busy"):
        worker = engine.worker(worker_id)
        engine.submit()
        taken = engine.take_one(worker)
        if worker_id == "idle":
            engine.settle(worker, succeeded(taken))
        engine.redis.delete(engine.keys.worker_prefix + worker_id)
    return calls.sweep(engine.keys, "default")


SCENES: dict[str, list[Scene]] = {
    "submit": [submit_now, submit_later],
    "take": [take_new_work_with_more_behind_it, take_all_there_is, take_beside_work_in_hand,
             take_an_ended_lease, take_what_was_released, take_a_spent_budget, take_an_orphan,
             take_what_runs_alone, take_before_what_runs_alone,
             take_after_the_group_was_made_anew, take_by_an_unknown_process],
    "settle": [settle_every_way, settle_without_dead_letters, settle_with_the_dead_letters_full,
               settle_too_late],
    "renew": [renew_what_is_held_and_what_is_not],
    "release": [release_some_and_keep_the_started],
    "promote": [promote_delayed_and_retried, promote_behind_the_leader],
    "register": [register_the_first, register_again_beside_another],
    "goodbye": [goodbye_with_nothing_left, goodbye_with_work_left],
    "sweep": [sweep_the_dead],
}

ALL_SCENES = [pytest.param(name, scene, id=f"{name}-{scene.__name__}")
              for name, scenes in SCENES.items() for scene in scenes]

COUNTS_WHAT_IT_DID = ("promote", "sweep")
"""Scripts that tell how much this call has done; sent again they have less to do."""


def test_every_script_has_a_scene_here() -> None:
    assert set(SCENES) == set(scripts.NAMES) == set(scripts.SCRIPTS)


@pytest.mark.parametrize(("name", "scene"), ALL_SCENES)
def test_a_script_sent_twice_leaves_the_same_key_space_and_gives_the_same_answer(
        engine: Engine, name: str, scene: Scene) -> None:
    call = scene(engine)
    assert call.script == name
    first_answer = engine.run(call)
    after_first = engine.dump()
    second_answer = engine.run(call)
    assert engine.dump() == after_first
    if name not in COUNTS_WHAT_IT_DID:
        assert second_answer == first_answer
    elif name == "promote":
        assert (second_answer[0], *second_answer[2:]) == (first_answer[0], *first_answer[2:])


def test_a_script_sent_twice_does_something_the_first_time(engine: Engine) -> None:
    quiet = {settle_too_late, take_by_an_unknown_process, promote_behind_the_leader,
             register_again_beside_another}
    for scene in (scene for scenes in SCENES.values() for scene in scenes):
        call = scene(engine)
        before = engine.dump()
        engine.run(call)
        assert (engine.dump() == before) == (scene in quiet), scene.__name__
        engine.redis.delete(*engine.dump())


@pytest.fixture
def out_of_memory(engine: Engine) -> Iterator[Callable[[], None]]:
    yield lambda: engine.redis.config_set("maxmemory", 1)
    engine.redis.config_set("maxmemory", 0)


@pytest.mark.parametrize(("name", "scene"), [
    scene for scene in ALL_SCENES if scene.values[0] != "submit"])
def test_a_script_that_moves_accepted_work_runs_when_the_server_is_out_of_memory(
        engine: Engine, out_of_memory: Callable[[], None], name: str, scene: Scene) -> None:
    call = scene(engine)
    out_of_memory()
    engine.run(call)
    engine.run(call)


@pytest.mark.parametrize("scene", SCENES["submit"])
def test_a_submission_is_refused_and_nothing_is_kept_when_the_server_is_out_of_memory(
        engine: Engine, out_of_memory: Callable[[], None], scene: Scene) -> None:
    call = scene(engine)
    out_of_memory()
    with pytest.raises(ResponseError, match="maxmemory"):
        engine.run(call)
    assert engine.dump() == {}


def test_the_shebang_of_a_script_stays_its_first_line() -> None:
    script = scripts.make("name", "#!lua flags=allow-oom\nreturn 1")
    assert script.source.startswith("#!lua flags=allow-oom\n-- Shared by")
    assert script.source.endswith("\nreturn 1")

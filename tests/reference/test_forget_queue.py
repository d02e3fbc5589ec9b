"""The script `forget_queue`, and the purge that ends with it: an empty queue leaves no trace."""

from __future__ import annotations

import pytest
from dtq_reference import calls

from tests.reference.engine import ACTOR, Engine, refused, succeeded


def purge(engine: Engine, queue: str = "default") -> int:
    return engine.do(engine.operations.purge_queue(queue, ACTOR))


def forget(engine: Engine) -> int:
    removed: int = engine.run(calls.forget_queue(engine.keys, engine.settings, "default"))
    return removed


# KEY-16
def test_an_empty_queue_loses_its_name_and_its_streams(engine: Engine) -> None:
    engine.bury()
    assert forget(engine) == 1
    assert not engine.redis.exists(*engine.keys.streams("default"))
    assert engine.redis.smembers(engine.keys.queues) == set()


def test_a_queue_with_unfinished_work_stays(engine: Engine) -> None:
    waits = [engine.submit(delay_ms=60_000), engine.submit()]
    engine.take_one(engine.worker())
    for task_id in waits:
        before = engine.dump()
        assert forget(engine) == 0
        assert engine.dump() == before
        engine.cancel(task_id)
    assert forget(engine) == 0


def test_a_worker_makes_the_groups_of_a_forgotten_queue_anew(engine: Engine) -> None:
    worker = engine.worker()
    forget(engine)
    task_id = engine.submit()
    with pytest.raises(Exception, match="NOGROUP"):
        engine.take(worker)
    engine.run(engine.hello(worker, again=True))
    assert engine.take_one(worker).task_id == task_id
    assert engine.redis.smembers(engine.keys.queues) == {b"default"}


# The purge of a queue ---------------------------------------------------------------------------

def test_a_purge_cancels_what_waits_and_leaves_what_runs(engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    taken = engine.take_one(worker)
    waiting = [engine.wait_for_retry(), engine.submit(delay_ms=60_000), engine.released(),
               engine.submit(priority=9)]
    elsewhere = [engine.submit(queue="mail"), engine.submit(queue="mail", delay_ms=60_000)]
    ear = engine.listen()
    assert purge(engine) == 4
    assert ear.types() == ["TASK_CANCELLED"] * 4
    assert {engine.status(task_id) for task_id in waiting} == {"cancelled"}
    assert [engine.status(task_id) for task_id in elsewhere] == ["queued", "pending"]
    assert engine.record(taken.task_id)["status"] == "running"
    assert "cancel_requested" not in engine.record(taken.task_id)
    assert engine.settle(worker, succeeded(taken)) == ["succeeded"]
    assert {(line["action"], line["actor"], line["task_id"]) for line in engine.audited()} == {
        ("purge", ACTOR.name, task_id) for task_id in waiting}
    assert purge(engine) == 0
    assert engine.redis.smembers(engine.keys.queues) == {b"mail"}


def test_a_purge_goes_page_by_page(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtq_reference.operations.PAGE", 2)
    for delay_ms in (0, 60_000):
        for _ in range(5):
            engine.submit(delay_ms=delay_ms)
    assert purge(engine) == 10
    assert (engine.redis.exists(*engine.keys.streams("default")), engine.dump().keys()
            & {engine.keys.schedule, engine.keys.schedule_depth, engine.keys.queues}) == (0, set())


def test_a_purge_passes_by_what_is_not_the_engines(engine: Engine) -> None:
    engine.redis.xadd(engine.keys.stream("default", 5), {"what": "is this"})
    task_id = engine.submit()
    assert purge(engine) == 1
    assert engine.status(task_id) == "cancelled"
    engine.take(engine.worker())
    assert len(engine.dead_letters()) == 1


def test_only_a_queues_name_can_be_purged(engine: Engine) -> None:
    for name in ("", "dead-letter:", "A", "\udcff"):
        with refused("INVALID_TASK", "is not a queue's name"):
            purge(engine, name)
    assert purge(engine, "never-used") == 0
    assert engine.dump() == {}

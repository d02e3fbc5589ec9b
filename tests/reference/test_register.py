"""The script `register`: a worker says hello, and groups begin where nothing is skipped."""

from __future__ import annotations

from dtq_reference.calls import Identity

from tests.reference.engine import GROUP, Engine


def test_the_worker_is_known_and_its_hash_expires(engine: Engine) -> None:
    worker = engine.worker()
    found = engine.redis.hgetall(engine.keys.worker_prefix + "w")
    assert (found[b"incarnation"].decode(), found[b"status"]) == (worker.incarnation, b"ready")
    assert engine.redis.smembers(engine.keys.workers) == {b"w"}
    ttl_ms = engine.redis.pttl(engine.keys.worker_prefix + "w")
    assert 0 < ttl_ms <= 10_000 * engine.settings.heartbeat_interval_s


def test_what_waited_before_the_group_existed_is_taken(engine: Engine) -> None:
    task_id = engine.submit(priority=0)
    assert engine.take_one(engine.worker()).task_id == task_id


def test_groups_that_exist_are_left_as_they_are_and_lost_ones_are_made_anew(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    engine.take_one(worker)
    lost = engine.keys.stream("default", 0)
    engine.redis.xgroup_destroy(lost, GROUP)
    engine.run(engine.hello(worker, again=True))
    assert len(engine.pending()) == 1
    assert [group["last-delivered-id"] for group in engine.redis.xinfo_groups(lost)] == [b"0-0"]


def test_a_start_takes_the_name_over_and_a_reminder_does_not(engine: Engine) -> None:
    first, second = engine.worker("w"), Identity("w", "0000000b")
    assert engine.run(engine.hello(second, again=True)) == b"other"
    assert engine.take(first).state == "ours"
    assert engine.run(engine.hello(second)) == b"ours"
    assert engine.run(engine.hello(first, again=True)) == b"other"
    assert engine.take(first).state == "other"


def test_a_start_is_announced_once_and_a_reminder_is_not(engine: Engine) -> None:
    ear = engine.listen()
    worker = engine.worker("w")
    engine.run(engine.hello(worker))
    engine.run(engine.hello(worker, again=True))
    engine.redis.delete(engine.keys.worker_prefix + "w")
    engine.run(engine.hello(worker, again=True))
    assert [(event["type"], event["worker_id"]) for event in ear.heard()] == [
        ("WORKER_STARTED", "w")]

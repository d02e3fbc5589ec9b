"""The script `promote`: due work moves into its stream, never early, and only for the leader."""

from __future__ import annotations

from dtq_reference.calls import PROMOTE_LIMIT, SCHEDULER_LOCK_MS

from tests.reference.engine import ANOTHER, LEADER, Engine, failed

NOTHING = (True, 0, False, False)


# SCHED-03
def test_only_the_holder_of_the_lock_promotes_and_it_refreshes_the_lock(engine: Engine) -> None:
    task_id = engine.submit(delay_ms=60_000)
    engine.promote(LEADER)
    engine.make_due(task_id)
    engine.redis.pexpire(engine.keys.scheduler_lock, 5_000)
    assert engine.promote(ANOTHER).leader is False
    assert engine.status(task_id) == "pending"
    assert engine.redis.pttl(engine.keys.scheduler_lock) <= 5_000
    assert engine.promote(LEADER).promoted == 1
    assert 5_000 < engine.redis.pttl(engine.keys.scheduler_lock) <= SCHEDULER_LOCK_MS


# SCHED-03
def test_when_the_lock_has_ended_another_leads(engine: Engine) -> None:
    engine.promote(LEADER)
    engine.redis.delete(engine.keys.scheduler_lock)
    assert engine.promote(ANOTHER).leader is True
    assert engine.promote(LEADER).leader is False


def test_nothing_is_promoted_early(engine: Engine) -> None:
    task_id = engine.submit(delay_ms=60_000)
    now_ms = int(engine.redis.time()[0]) * 1000
    engine.redis.zadd(engine.keys.schedule, {task_id: now_ms + 30_000})
    before = engine.dump()
    engine.promote()
    reply = engine.promote()
    assert (reply.leader, reply.promoted, reply.more, reply.unknown_queue) == NOTHING
    after = engine.dump()
    after.pop(engine.keys.scheduler_lock)
    assert after == before


def test_a_delayed_task_keeps_attempt_one_and_enters_its_own_level(engine: Engine) -> None:
    task_id = engine.submit(delay_ms=60_000, priority=8, payload={"a": "ä"})
    engine.make_due(task_id)
    assert engine.promote().promoted == 1
    assert engine.redis.zcard(engine.keys.schedule) == 0
    assert engine.redis.xlen(engine.keys.stream("default", 8)) == 1
    taken = engine.take_one(engine.worker())
    assert (taken.task_id, taken.attempt, taken.payload) == (task_id, 1, '{"a":"ä"}'.encode())


def test_a_retry_is_the_next_attempt(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.settle(worker, failed(engine.take_one(worker)))
    engine.make_due(task_id)
    engine.promote()
    record = engine.record(task_id)
    assert (record["status"], record["attempt"]) == ("queued", "2")


def test_at_most_a_hundred_are_promoted_in_a_pass_the_earliest_first(engine: Engine) -> None:
    submitted = [engine.submit(delay_ms=60_000) for _ in range(PROMOTE_LIMIT + 2)]
    engine.make_due(*submitted)
    first = engine.promote()
    assert (first.promoted, first.more) == (PROMOTE_LIMIT, True)
    assert engine.redis.zrange(engine.keys.schedule, 0, -1) == [
        task_id.encode() for task_id in submitted[PROMOTE_LIMIT:]]
    second = engine.promote()
    assert (second.promoted, second.more) == (2, False)


def test_a_due_task_of_a_queue_that_was_not_named_stays_and_is_said(engine: Engine) -> None:
    elsewhere = engine.submit(delay_ms=60_000, queue="elsewhere")
    here = engine.submit(delay_ms=60_000)
    engine.make_due(elsewhere, here)
    reply = engine.promote()
    assert (reply.promoted, reply.unknown_queue) == (1, True)
    assert engine.status(elsewhere) == "pending"
    reply = engine.promote(queues=("default", "elsewhere"))
    assert (reply.promoted, reply.unknown_queue) == (1, False)
    assert engine.redis.xlen(engine.keys.stream("elsewhere", 5)) == 1


def test_a_member_without_a_task_leaves_the_schedule(engine: Engine) -> None:
    engine.redis.zadd(engine.keys.schedule, {"0" * 32: 1})
    assert engine.promote().promoted == 0
    assert engine.redis.zcard(engine.keys.schedule) == 0


# TTL-05
def test_a_task_whose_time_to_live_is_over_when_it_is_due_expires(engine: Engine) -> None:
    delayed = engine.submit(delay_ms=60_000, metadata={"ttl_seconds": 60}, idempotency_key="k")
    retried = engine.wait_for_retry(metadata={"ttl_seconds": 60})
    engine.expire(delayed)
    engine.expire(retried)
    engine.make_due(delayed, retried)
    ear = engine.listen()
    reply = engine.promote()
    assert (reply.promoted, reply.ended) == (0, [[b"default", b"echo_task", b"expired"]] * 2)
    assert (engine.status(delayed), engine.status(retried)) == ("expired", "expired")
    assert engine.expires(delayed)
    assert engine.key_record("k")["state"] == "failed"
    assert ear.types() == ["TASK_EXPIRED", "TASK_EXPIRED"]
    assert not engine.redis.exists(engine.keys.schedule, engine.keys.schedule_depth)


def test_each_promotion_is_announced_a_retrys_as_such(engine: Engine) -> None:
    delayed, retried = engine.submit(delay_ms=60_000), engine.wait_for_retry()
    engine.make_due(delayed, retried)
    ear = engine.listen()
    engine.promote()
    engine.promote()
    assert [(event["type"], event["task_id"], event["attempt"]) for event in ear.heard()] == [
        ("TASK_QUEUED", delayed, 1), ("TASK_RETRIED", retried, 2)]


def test_a_member_without_a_task_leaves_the_depths_of_the_others_right(engine: Engine) -> None:
    gone, mail = engine.submit(delay_ms=60_000), engine.submit(delay_ms=60_000, queue="mail")
    engine.submit(delay_ms=60_000)
    engine.redis.delete(engine.keys.task_prefix + gone)
    engine.make_due(gone)
    engine.promote()
    assert engine.redis.hgetall(engine.keys.schedule_depth) == {b"default": b"1", b"mail": b"1"}
    assert (engine.depth(), engine.depth("mail")) == (1, 1)
    engine.cancel(mail)
    assert engine.redis.hgetall(engine.keys.schedule_depth) == {b"default": b"1"}


def test_a_member_whose_task_does_not_wait_leaves_and_is_not_promoted(engine: Engine) -> None:
    task_id = engine.submit()
    engine.redis.zadd(engine.keys.schedule, {task_id: 1})
    assert engine.promote().promoted == 0
    assert (engine.depth(), engine.redis.zcard(engine.keys.schedule)) == (1, 0)

"""The script `renew`: whose lease is renewed, for how long, and what a process hears of itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dtq_reference.calls import Identity, Taken
from dtq_reference.keys import GROUP

from tests.reference.engine import LONG_AGO_MS, Engine, succeeded
from tests.reference.test_settle import NOT_THE_HOLDER


def idle_ms(engine: Engine, taken: Taken) -> int:
    stream = engine.keys.streams("default")[taken.level - 1]
    (pending,) = engine.redis.xpending_range(stream, GROUP, taken.entry_id, taken.entry_id, 1)
    idle: int = pending["time_since_delivered"]
    return idle


def test_the_lease_of_a_holder_begins_anew(engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    taken = engine.take_one(worker)
    engine.end_leases()
    assert engine.renew(worker, taken) == ("ours", [1])
    assert idle_ms(engine, taken) < LONG_AGO_MS
    assert engine.take(engine.worker("other")).tasks == []


@pytest.mark.parametrize("alter", NOT_THE_HOLDER)
def test_a_lease_is_not_renewed(
        engine: Engine, alter: Callable[[Identity, Taken], tuple[Identity, Taken]]) -> None:
    engine.submit()
    engine.lose_holder()
    worker = engine.worker()
    taken = engine.take_one(worker)
    engine.end_leases()
    someone, altered = alter(worker, taken)
    assert engine.renew(someone, altered)[1] == [0]
    assert idle_ms(engine, taken) >= LONG_AGO_MS


def test_only_what_is_named_as_in_hand_is_renewed(engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    engine.submit()
    named, unseen = engine.take(worker).tasks
    engine.end_leases()
    engine.renew(worker, named)
    assert engine.take_one(engine.worker("other")).task_id == unseen.task_id


@pytest.mark.parametrize(("slack_ms", "is_renewed"), [(600_000, True), (-1, False)])
def test_no_lease_is_renewed_later_than_the_time_limit_and_one_lease_after_its_attempt_began(
        engine: Engine, slack_ms: int, is_renewed: bool) -> None:
    worker = engine.worker()
    task_id = engine.submit(timeout_ms=3_000_000)
    taken = engine.take_one(worker)
    began = int(engine.record(task_id)["started_at"])
    limit_ms = 3_000_000 + engine.settings.lease_ms
    engine.redis.hset(engine.keys.task_prefix + task_id, "started_at",
                      began - limit_ms + slack_ms)
    engine.end_leases()
    assert engine.renew(worker, taken) == ("ours", [int(is_renewed)])
    redelivered = engine.take(engine.worker("other")).tasks
    assert [taken.attempt for taken in redelivered] == ([] if is_renewed else [2])


def test_a_finished_attempt_is_not_renewed(engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    taken = engine.take_one(worker)
    engine.settle(worker, succeeded(taken))
    before = engine.dump()
    assert engine.renew(worker, taken)[1] == [0]
    assert {key: value for key, value in engine.dump().items() if ":worker:" not in key} == {
        key: value for key, value in before.items() if ":worker:" not in key}


def test_a_beat_keeps_the_workers_hash_and_says_how_it_is(engine: Engine) -> None:
    worker = engine.worker()
    key = engine.keys.worker_prefix + "w"
    engine.redis.pexpire(key, 1000)
    engine.renew(worker)
    assert engine.redis.pttl(key) > 1000
    assert engine.redis.hget(key, "status") == b"busy"


def test_a_process_hears_that_another_has_its_name_and_does_not_write_its_hash(
        engine: Engine) -> None:
    old, new = engine.worker("w"), engine.worker("w")
    before = engine.dump()
    assert engine.renew(old) == ("other", [])
    assert engine.dump() == before
    assert engine.renew(new) == ("ours", [])


def test_the_old_process_of_a_name_keeps_the_leases_of_what_it_executes(engine: Engine) -> None:
    old = engine.worker("w")
    engine.submit()
    taken = engine.take_one(old)
    engine.worker("w")
    engine.end_leases()
    assert engine.renew(old, taken) == ("other", [1])


def test_a_process_whose_hash_is_gone_hears_that_it_is_absent_and_makes_none(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.redis.delete(engine.keys.worker_prefix + "w")
    assert engine.renew(worker) == ("absent", [])
    assert not engine.redis.exists(engine.keys.worker_prefix + "w")


def test_a_beat_that_comes_after_the_release_does_not_undo_draining(engine: Engine) -> None:
    worker = engine.worker()
    engine.release(worker)
    assert engine.renew(worker) == ("ours", [])
    assert engine.redis.hget(engine.keys.worker_prefix + "w", "status") == b"draining"


def test_a_beat_that_comes_after_the_goodbye_does_not_bring_the_worker_back(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.goodbye(worker)
    before = engine.dump()
    assert engine.renew(worker) == ("leaving", [])
    assert engine.dump() == before

"""What several scripts share: dead letters, of which the newest DTQ_DLQ_MAXLEN exist, exactly; and
events."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference import calls, scripts
from redis.client import PubSub

from tests.reference.engine import Engine, failed


def bury(engine: Engine) -> str:
    worker = engine.worker()
    task_id = engine.submit()
    engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    return task_id


# DLQ-09
@pytest.mark.parametrize("limit", [1, 3])
def test_the_newest_dead_letters_exist_and_no_more(engine: Engine, limit: int) -> None:
    engine = engine.with_settings(dlq_maxlen=limit)
    buried = []
    for _ in range(limit + 2):
        buried.append(bury(engine))
        assert engine.letters() == buried[-limit:]


def test_the_task_of_a_trimmed_letter_begins_to_expire_and_that_of_a_kept_one_does_not(
        engine: Engine) -> None:
    engine = engine.with_settings(dlq_maxlen=2)
    trimmed, *kept = [bury(engine) for _ in range(3)]
    assert engine.expires(trimmed)
    assert [engine.expires(task_id) for task_id in kept] == [False, False]
    assert engine.status(trimmed) == "dead_lettered"


def test_a_lower_limit_takes_hold_at_the_next_letter(engine: Engine) -> None:
    before = [bury(engine) for _ in range(4)]
    last = bury(engine.with_settings(dlq_maxlen=2))
    assert engine.letters() == [before[-1], last]
    assert [engine.expires(task_id) for task_id in before] == [True, True, True, False]


def test_orphans_and_lost_workers_trim_too(engine: Engine) -> None:
    engine = engine.with_settings(dlq_maxlen=1)
    first = bury(engine)
    orphan = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + orphan)
    engine.take(engine.worker())
    assert engine.letters() == [orphan]
    assert engine.expires(first)
    lost = engine.submit(max_attempts=1)
    engine.lose_holder()
    engine.take(engine.worker())
    assert engine.letters() == [lost]


# Events -----------------------------------------------------------------------------------------

def test_a_whole_life_is_announced_one_event_for_each_transition_in_its_order(
        engine: Engine) -> None:
    worker = engine.worker()
    ear = engine.listen()
    task_id = engine.submit(delay_ms=60_000, max_attempts=2)
    for _ in range(2):
        engine.make_due(task_id)
        engine.promote()
        engine.settle(worker, failed(engine.take_one(worker)))
    engine.requeue(task_id)
    engine.take(worker)
    engine.release(worker)
    engine.cancel(task_id)
    events = ear.heard()
    assert [(event["type"], event["attempt"]) for event in events] == [
        ("TASK_QUEUED", 1), ("TASK_STARTED", 1), ("TASK_RETRY_SCHEDULED", 1), ("TASK_RETRIED", 2),
        ("TASK_STARTED", 2), ("TASK_DEAD_LETTERED", 2), ("TASK_QUEUED", 1), ("TASK_STARTED", 1),
        ("TASK_QUEUED", 1), ("TASK_CANCELLED", 1)]
    assert {event["task_id"] for event in events} == {task_id}
    assert {(event["queue"], event["task_type"]) for event in events} == {("default", "echo_task")}


def test_an_event_has_the_fields_of_the_contract_and_an_id_of_its_own(engine: Engine) -> None:
    worker = engine.worker()
    ear = engine.listen()
    engine.do(engine.operations.submit_all([{"task_type": "tü"}] * 20))
    engine.take(worker, room=20)
    events = ear.heard()
    assert len({event["event_id"] for event in events}) == 40
    for event in events:
        assert event.keys() == {"event_id", "ts", "type", "task_id", "queue", "task_type",
                                "attempt", "worker_id"}
        assert isinstance(event["ts"], int)
        assert abs(event["ts"] - engine.now_ms()) < 60_000
        assert event["task_type"] == "tü"


# Listeners --------------------------------------------------------------------------------------

SEVERAL = [{"task_type": "noop"}] * 5


def published(engine: Engine) -> int:
    """How many messages the server was given, by anybody."""
    return int(engine.redis.info("commandstats").get("cmdstat_publish", {}).get("calls", 0))


def heard(subscription: PubSub, count: int) -> list[str]:
    """The task ids of the next events that a subscription gets."""
    messages = [subscription.get_message(timeout=5) for _ in range(count)]
    return [json.loads(message["data"])["task_id"] for message in messages if message]


def test_what_nobody_hears_is_not_made(engine: Engine) -> None:
    before = published(engine)
    engine.do(engine.operations.submit_all(SEVERAL))
    assert published(engine) - before == 1
    ear = engine.listen()
    engine.do(engine.operations.submit_all(SEVERAL))
    assert len(ear.heard()) == len(SEVERAL)


def test_whoever_listens_by_a_pattern_hears_everything_too(engine: Engine) -> None:
    with engine.redis.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.psubscribe(f"{engine.keys.prefix}*")
        subscription.get_message(timeout=5)
        answers = engine.do(engine.operations.submit_all(SEVERAL))
        assert heard(subscription, len(SEVERAL)) == [each.task_id for each in answers]


@pytest.mark.slow
def test_whoever_listens_on_a_replica_hears_everything_too(tmp_path: Path) -> None:
    with Lab(tmp_path / "home") as home, Lab(tmp_path / "copy") as copy, \
            home.broker.connect() as master, copy.broker.connect() as replica, \
            closing(Engine(home.broker.url, "replicated:")) as engine, \
            replica.pubsub(ignore_subscribe_messages=True) as subscription:
        master.config_set("repl-diskless-sync-delay", 0)
        replica.replicaof(*urlsplit(home.broker.url).netloc.split(":"))
        wait_for(lambda: replica.info("replication")["master_link_status"] == "up",
                 reason="the replica to have its master", limit_s=20)
        subscription.subscribe(engine.keys.events)
        subscription.get_message(timeout=5)
        answers = engine.do(engine.operations.submit_all(SEVERAL))
        assert heard(subscription, len(SEVERAL)) == [each.task_id for each in answers]


def test_a_spent_budget_and_an_orphan_are_announced_as_dead_lettered(engine: Engine) -> None:
    spent = engine.submit(max_attempts=1)
    engine.lose_holder()
    orphan = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + orphan)
    worker = engine.worker()
    ear = engine.listen()
    engine.take(worker)
    assert [(event["type"], event["task_id"], event["metadata"]) for event in ear.heard()] == [
        ("TASK_DEAD_LETTERED", spent, {"error_class": "WorkerLost"}),
        ("TASK_DEAD_LETTERED", orphan, {"error_class": "OrphanEntry"})]


def test_a_live_task_under_the_id_of_a_trimmed_orphans_letter_does_not_expire(
        engine: Engine) -> None:
    engine = engine.with_settings(dlq_maxlen=1)
    task_id = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + task_id)
    engine.take(engine.worker())
    engine.submit(task_id=task_id, priority=0)
    bury(engine)
    assert task_id not in engine.letters()
    assert not engine.expires(task_id)


def test_a_task_whose_record_has_lost_its_names_ends_and_is_told_all_the_same(
        engine: Engine) -> None:
    worker, task_id = engine.worker(), engine.submit()
    engine.take_one(worker)
    engine.cancel(task_id)
    engine.redis.hdel(engine.keys.task_prefix + task_id, "queue")
    engine.redis.hset(engine.keys.task_prefix + task_id, "task_type", b"\xff")
    reply = engine.run(engine.release_call(worker))
    assert calls.read_release(reply) == [[b"", b"\xff", b"cancelled"]]


def test_the_shebang_of_a_script_stays_its_first_line() -> None:
    script = scripts.make("name", "#!lua flags=allow-oom\nreturn 1")
    assert script.source.startswith("#!lua flags=allow-oom\n-- Shared by")
    assert script.source.endswith("\nreturn 1")

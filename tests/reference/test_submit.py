"""The script `submit`: what is kept of a task, and that its id makes it one task."""

from __future__ import annotations

from dtq_reference.operations import Submitted

from tests.reference.engine import Engine, succeeded

TASK_ID = "0123456789abcdef" * 2


def test_a_task_waits_in_the_stream_of_its_queue_and_priority(engine: Engine) -> None:
    submitted = engine.queue.submit(task_type="echo_task", queue="mail", priority=7,
                                    payload={"to": "ü"}, max_attempts=3, timeout_ms=5000,
                                    metadata={"m": 1})
    assert (submitted.status, submitted.duplicate) == ("queued", False)
    task_id = submitted.task_id
    (_, fields), = engine.redis.xrange(engine.keys.stream("mail", 7))
    assert {name.decode(): value.decode() for name, value in fields.items()} == {
        "task_id": task_id, "queue": "mail", "task_type": "echo_task", "payload": '{"to":"ü"}',
        "attempt": "1", "max_attempts": "3", "priority": "7", "timeout_ms": "5000",
        "idempotency_key": ""}
    record = engine.record(task_id)
    assert (record["status"], record["metadata"], record["attempt"]) == ("queued", '{"m":1}', "1")
    assert engine.redis.smembers(engine.keys.queues) == {b"mail"}


def test_a_delayed_task_has_an_appointment_and_no_entry(engine: Engine) -> None:
    submitted = engine.queue.submit(task_type="echo_task", delay_ms=60_000)
    assert submitted.status == "pending"
    task_id = submitted.task_id
    record = engine.record(task_id)
    assert engine.redis.zscore(engine.keys.schedule, task_id) == int(record["available_at"])
    assert int(record["available_at"]) == int(record["created_at"]) + 60_000
    assert engine.redis.xlen(engine.keys.stream("default", 5)) == 0


def test_the_longest_delay_and_a_large_payload_are_kept_as_they_are(engine: Engine) -> None:
    ten_years_ms = 10 * 365 * 86_400_000
    task_id = engine.submit(delay_ms=ten_years_ms, payload={"x": "y" * 200_000})
    task = engine.queue.get(task_id)
    assert task is not None
    assert task.available_at == task.created_at + ten_years_ms
    assert task.payload == {"x": "y" * 200_000}


def test_a_known_id_is_answered_as_the_first_time_whatever_became_of_the_task(
        engine: Engine) -> None:
    worker = engine.worker()
    first = Submitted(TASK_ID, "queued")
    assert engine.queue.submit(task_type="echo_task", task_id=TASK_ID) == first
    taken = engine.take_one(worker)
    for _ in range(2):
        before = engine.dump()
        assert engine.queue.submit(task_type="sleep_task", task_id=TASK_ID, delay_ms=5) == first
        assert engine.dump() == before
        engine.settle(worker, succeeded(taken))


def test_the_list_of_recent_tasks_is_bounded(engine: Engine) -> None:
    engine.redis.zadd(engine.keys.recent, {f"{number:032x}": number for number in range(10_001)})
    task_id = engine.submit()
    assert engine.redis.zcard(engine.keys.recent) == 10_000
    assert engine.queue.tasks(limit=1)[0].task_id == task_id

"""The client: what it returns, and what it does when Redis does not answer."""

from __future__ import annotations

import asyncio

import pytest
from dtq_conformance.broker import free_port
from dtq_reference.errors import BrokerUnreachable, DtqError
from dtq_reference.queue import AsyncQueue, Queue
from dtq_reference.settings import Settings

from tests.reference.engine import Engine, failed

TASK_ID = "0123456789abcdef" * 2


def test_a_task_that_was_never_submitted_is_none(engine: Engine) -> None:
    assert engine.queue.get(TASK_ID) is None


def test_a_task_is_shown_as_it_was_submitted(engine: Engine) -> None:
    engine.submit(task_id=TASK_ID, payload={"a": [1, None, "ä"]}, metadata={"m": {}}, priority=9,
                  max_attempts=2, timeout_ms=77)
    task = engine.queue.get(TASK_ID)
    assert task is not None
    assert (task.task_id, task.payload, task.metadata, task.priority, task.max_attempts,
            task.timeout_ms, task.status, task.attempt, task.result, task.error_class) == (
        TASK_ID, {"a": [1, None, "ä"]}, {"m": {}}, 9, 2, 77, "queued", 1, None, None)


def test_a_failed_attempt_shows_its_error(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.settle(worker, failed(engine.take_one(worker), delay_ms=1234))
    task = engine.queue.get(task_id)
    assert task is not None
    assert (task.error_class, task.error_message, task.retryable, task.retry_delay_ms,
            task.duration_ms) == ("Broken", "it broke", True, 1234, 5)


def test_the_newest_tasks_and_letters_come_first_and_are_limited(engine: Engine) -> None:
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
        engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    letters = [letter.task_id for letter in engine.dead_letters()]
    assert len(letters) == 3
    assert [letter.task_id for letter in engine.dead_letters(1)] == letters[:1]
    created = [task.created_at for task in engine.tasks()]
    assert created == sorted(created, reverse=True)
    assert len(engine.tasks(limit=2)) == 2


def test_a_forgotten_task_is_not_listed(engine: Engine) -> None:
    kept, forgotten = engine.submit(), engine.submit()
    engine.redis.delete(engine.keys.task_prefix + forgotten)
    assert [task.task_id for task in engine.tasks()] == [kept]


def test_a_letter_of_an_entry_that_is_not_the_engines_can_be_read(engine: Engine) -> None:
    worker = engine.worker()
    engine.redis.xadd(engine.keys.stream("default", 5), {"what": "is this"})
    assert engine.take(worker).tasks == []
    (letter,) = engine.dead_letters()
    assert (letter.task_id, letter.last_error_class) == ("", "OrphanEntry")


@pytest.mark.parametrize("fields", [{"priority": 10}, {"task_id": "x"}, {"payload": []}])
def test_of_a_refused_submission_nothing_is_kept(
        engine: Engine, fields: dict[str, object]) -> None:
    with pytest.raises(DtqError):
        engine.submit(**fields)
    assert engine.dump() == {}


def test_a_submission_that_nobody_listens_for_is_refused_and_says_so() -> None:
    held, port = free_port()
    queue = Queue(Settings(redis_url=f"redis://127.0.0.1:{port}", task_retention_s=1))
    with pytest.raises(DtqError, match=r"within 1 s.*Nothing was done") as refused:
        queue.submit(task_type="echo_task")
    assert refused.value.code == "BROKER_UNAVAILABLE"
    if held is not None:
        held.close()


def test_the_asynchronous_client_does_the_same_operations(engine: Engine) -> None:
    async def submit_and_look() -> tuple[str, str]:
        queue = AsyncQueue(engine.settings)
        try:
            submitted = await queue.do(queue.operations.submit(task_type="t"))
            with pytest.raises(DtqError):
                await queue.do(queue.operations.submit(task_type=""))
            task = await queue.do(queue.operations.get(submitted.task_id))
        finally:
            await queue.close()
        assert task is not None
        return submitted.task_id, task.status

    task_id, status = asyncio.run(submit_and_look())
    assert status == engine.status(task_id) == "queued"


# IDEM-11
@pytest.mark.parametrize(("retention_s", "limit_s"), [(20, 20), (30, 30), (604_800, 30)])
def test_a_submission_is_sent_again_for_half_a_minute_or_for_as_long_as_tasks_are_kept(
        monkeypatch: pytest.MonkeyPatch, retention_s: int, limit_s: float) -> None:
    limits: list[float] = []

    def unanswered(_: object, call: object, *, limit_s: float) -> None:
        limits.append(limit_s)
        raise BrokerUnreachable("no answer came")

    async def unanswered_on_a_loop(_: object, call: object, *, limit_s: float) -> None:
        unanswered(_, call, limit_s=limit_s)

    monkeypatch.setattr(Queue, "call_again", unanswered)
    monkeypatch.setattr(AsyncQueue, "call_again", unanswered_on_a_loop)
    settings = Settings(task_retention_s=retention_s)
    with pytest.raises(BrokerUnreachable):
        Queue(settings).submit(task_type="echo_task")
    queue = AsyncQueue(settings)
    with pytest.raises(BrokerUnreachable):
        asyncio.run(queue.do(queue.operations.submit(task_type="echo_task")))
    assert limits == [limit_s, limit_s]

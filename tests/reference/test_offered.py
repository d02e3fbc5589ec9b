"""What is offered outside: answers that can be shown, and refusals with one code for all."""

from __future__ import annotations

import pytest
from dtq_reference.calls import Actor
from dtq_reference.errors import DtqError
from dtq_reference.offered import Offered, accepted
from dtq_reference.operations import Steps, T

from tests.reference.engine import Engine, failed

TASK_ID = "0123456789abcdef" * 2
BY = Actor("somebody")


def do(engine: Engine, steps: Steps[T]) -> T:
    return engine.queue.do(steps)


@pytest.fixture
def offered(engine: Engine) -> Offered:
    return Offered(engine.settings)


def test_a_task_is_shown_and_one_that_is_not_known_is_refused(
        engine: Engine, offered: Offered) -> None:
    task_id = engine.submit()
    assert do(engine, offered.task(task_id)).task_id == task_id
    with pytest.raises(DtqError, match=TASK_ID) as refused:
        do(engine, offered.task(TASK_ID))
    assert refused.value.code == "TASK_NOT_FOUND"


def test_a_waiting_task_is_cancelled_and_a_running_one_is_asked(
        engine: Engine, offered: Offered) -> None:
    waiting = engine.submit()
    assert do(engine, offered.cancel_task(waiting, BY)) == accepted(waiting, "cancelled")
    running = engine.submit()
    engine.take_one(engine.worker())
    with pytest.raises(DtqError) as refused:
        do(engine, offered.cancel_task(running, BY))
    assert (refused.value.code, refused.value.details) == (
        "CANCEL_REQUESTED", {"task_id": running})


def test_dead_letters_are_requeued_discarded_and_purged(engine: Engine, offered: Offered) -> None:
    worker = engine.worker()
    first, second, _ = [engine.submit() for _ in range(3)]
    for _ in range(3):
        engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    assert do(engine, offered.requeue_task(first, BY)) == accepted(first, "queued")
    assert do(engine, offered.discard_task(second, BY)) == accepted(second, "dead_lettered")
    assert do(engine, offered.purge_all_letters(BY)) == {"purged": 1}


def test_a_queue_is_paused_resumed_shown_and_purged(engine: Engine, offered: Offered) -> None:
    engine.submit()
    assert do(engine, offered.pause_queue("default", BY)) == {
        "queue": "default", "paused": True}
    assert do(engine, offered.resume_queue("default", BY)) == {
        "queue": "default", "paused": False}
    [one] = do(engine, offered.stats())  # type: ignore[misc]
    assert do(engine, offered.stats("default")) == one
    assert do(engine, offered.purge_all_waiting("default", BY)) == {"purged": 1}


def test_a_type_that_nobody_handles_is_refused_where_that_is_known(engine: Engine) -> None:
    knowing = Offered(engine.settings, frozenset({"echo_task"}))
    do(engine, knowing.submit(task_type="echo_task"))
    with pytest.raises(DtqError, match="nobody's") as refused:
        do(engine, knowing.submit(task_type="nobody's"))
    assert refused.value.code == "UNKNOWN_TASK_TYPE"

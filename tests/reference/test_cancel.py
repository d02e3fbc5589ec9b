"""The script `cancel`: at once while a task waits, by a request while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.reference.engine import ACTOR, Engine, failed, refused, succeeded


def pending(engine: Engine, **fields: Any) -> str:
    return engine.submit(delay_ms=60_000, **fields)


def queued(engine: Engine, **fields: Any) -> str:
    return engine.submit(**fields)


def released(engine: Engine, **fields: Any) -> str:
    return engine.released(**fields)


def retrying(engine: Engine, **fields: Any) -> str:
    return engine.wait_for_retry(**fields)


WAITING = [pending, queued, released, retrying]


# CANCEL-02
@pytest.mark.parametrize("waits", WAITING)
def test_what_waits_is_cancelled_at_once_and_nothing_leads_to_it_any_more(
        engine: Engine, waits: Callable[..., str]) -> None:
    worker = engine.worker()
    task_id = waits(engine, priority=7, idempotency_key="k")
    assert engine.depth() == 1
    ear = engine.listen()
    assert engine.cancel(task_id) == "cancelled"
    task = engine.queue.get(task_id)
    assert task is not None
    assert (task.status, task.finished_at is not None) == ("cancelled", True)
    assert engine.expires(task_id)
    assert engine.key_record("k")["state"] == "failed"
    assert (engine.depth(), engine.pending()) == (0, {})
    assert engine.redis.xlen(engine.keys.stream("default", 7)) == 0
    assert not engine.redis.exists(engine.keys.schedule, engine.keys.schedule_depth)
    (event,) = ear.heard()
    assert (event["type"], event["task_id"], event["attempt"]) == ("TASK_CANCELLED", task_id, 1)
    assert engine.take(worker).tasks == []


def test_an_event_of_a_task_whose_record_somebody_spoiled_is_told_all_the_same(
        engine: Engine) -> None:
    task_id = engine.submit()
    engine.redis.hset(engine.keys.task_prefix + task_id, "attempt", "many")
    ear = engine.listen()
    assert engine.cancel(task_id) == "cancelled"
    (event,) = ear.heard()
    assert (event["type"], event["attempt"]) == ("TASK_CANCELLED", 0)


@pytest.mark.parametrize("waits", WAITING)
def test_a_cancellation_is_audited_once(engine: Engine, waits: Callable[..., str]) -> None:
    task_id = waits(engine)
    engine.cancel(task_id)
    with refused("TASK_TERMINAL", "is cancelled already", status="cancelled"):
        engine.cancel(task_id)
    (line,) = engine.audited()
    assert line.pop("ts") == engine.record(task_id)["finished_at"]
    assert line == {"actor": ACTOR.name, "action": "cancel", "task_id": task_id,
                    "request_id": ACTOR.request_id}


def running(engine: Engine) -> tuple[Any, Any]:
    """A worker, and what it has taken and was asked to cancel."""
    worker = engine.worker()
    task_id = engine.submit(idempotency_key="k")
    taken = engine.take_one(worker)
    assert engine.cancel(task_id) == "requested"
    return worker, taken


def test_what_runs_is_asked_to_stop_and_runs_on_until_it_hears_that(engine: Engine) -> None:
    worker, taken = running(engine)
    task = engine.queue.get(taken.task_id)
    assert task is not None
    assert (task.status, task.cancel_requested is not None) == ("running", True)
    assert engine.renew(worker, taken) == ("ours", [2])
    assert engine.key_record("k")["state"] == "processing"


def test_a_second_request_changes_nothing(engine: Engine) -> None:
    _, taken = running(engine)
    before = engine.dump()
    assert engine.cancel(taken.task_id) == "requested"
    assert engine.dump() == before
    assert [line["action"] for line in engine.audited()] == ["cancel"]


def fails(engine: Engine, worker: Any, taken: Any) -> None:
    assert engine.settle(worker, failed(taken)) == ["cancelled"]


def fails_for_good(engine: Engine, worker: Any, taken: Any) -> None:
    assert engine.settle(worker, failed(taken, retryable=False)) == ["cancelled"]


def loses_its_holder(engine: Engine, other: Any, taken: Any) -> None:
    engine.end_leases()
    assert engine.take(other).tasks == []


def is_released(engine: Engine, worker: Any, taken: Any) -> None:
    engine.release(worker)


def loses_its_answer(engine: Engine, worker: Any, taken: Any) -> None:
    assert engine.take(worker).tasks == []


@pytest.mark.parametrize("befalls", [fails, fails_for_good, loses_its_holder, is_released,
                                     loses_its_answer])
def test_after_a_request_no_attempt_begins_and_a_task_is_cancelled_that(
        engine: Engine, befalls: Callable[[Engine, Any, Any], None]) -> None:
    worker, taken = running(engine)
    other = engine.worker("other")
    ear = engine.listen()
    befalls(engine, other if befalls is loses_its_holder else worker, taken)
    assert engine.status(taken.task_id) == "cancelled"
    assert ear.types() == ["TASK_CANCELLED"]
    assert (engine.pending(), engine.depth(), engine.letters()) == ({}, 0, [])
    assert engine.expires(taken.task_id)
    assert engine.key_record("k")["state"] == "failed"


def test_a_due_retry_that_was_asked_to_stop_is_cancelled(engine: Engine) -> None:
    task_id = engine.wait_for_retry()
    engine.redis.hset(engine.keys.task_prefix + task_id, "cancel_requested", 1)
    engine.make_due(task_id)
    assert engine.promote().promoted == 0
    assert (engine.status(task_id), engine.depth()) == ("cancelled", 0)


def test_a_success_that_settles_first_stays_succeeded(engine: Engine) -> None:
    worker, taken = running(engine)
    assert engine.settle(worker, succeeded(taken)) == ["succeeded"]
    assert engine.status(taken.task_id) == "succeeded"
    assert engine.key_record("k")["state"] == "completed"
    with refused("TASK_TERMINAL", status="succeeded"):
        engine.cancel(taken.task_id)


def test_a_lost_holder_whose_budget_is_spent_is_cancelled_and_no_dead_letter(
        engine: Engine) -> None:
    task_id = engine.submit(max_attempts=1)
    engine.take_one(engine.worker())
    engine.cancel(task_id)
    engine.end_leases()
    engine.take(engine.worker("other"))
    assert (engine.status(task_id), engine.letters()) == ("cancelled", [])


@pytest.mark.parametrize("task_id", ["0" * 32, "", "x", "\udcff", "0" * 31 + "\n"])
def test_what_is_not_known_cannot_be_cancelled(engine: Engine, task_id: str) -> None:
    with refused("TASK_NOT_FOUND"):
        engine.cancel(task_id)
    assert engine.dump() == {}


def test_a_dead_letter_cannot_be_cancelled(engine: Engine) -> None:
    with refused("TASK_TERMINAL", status="dead_lettered"):
        engine.cancel(engine.bury())

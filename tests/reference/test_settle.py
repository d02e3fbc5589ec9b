"""The script `settle`: what an end leads to, and who may record one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from dtq_reference.calls import Identity, Outcome, Taken

from tests.reference.engine import Engine, failed, succeeded


def test_a_success_leaves_its_result_and_no_entry_and_the_record_begins_to_expire(
        engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    assert engine.settle(worker, succeeded(engine.take_one(worker), b'{"n":1}')) == ["succeeded"]
    task = engine.queue.get(task_id)
    assert task is not None
    assert (task.status, task.result, task.attempt, task.worker_id) == (
        "succeeded", {"n": 1}, 1, "w")
    assert engine.redis.xlen(engine.keys.stream("default", 5)) == 0
    assert engine.pending() == {}
    assert engine.expires(task_id)


def test_a_result_may_be_long(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.settle(worker, succeeded(engine.take_one(worker), b'"' + b"x" * 200_000 + b'"'))
    task = engine.queue.get(task_id)
    assert task is not None
    assert task.result == "x" * 200_000


def test_a_retryable_failure_makes_an_appointment_and_the_record_does_not_expire(
        engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    outcome = failed(engine.take_one(worker), delay_ms=60_000)
    assert engine.settle(worker, outcome) == ["retrying"]
    record = engine.record(task_id)
    due = engine.redis.zscore(engine.keys.schedule, task_id)
    assert due == int(record["finished_at"]) + 60_000
    assert (record["attempt"], record["error_class"], record["retry_delay_ms"]) == (
        "1", "Broken", "60000")
    assert engine.pending() == {}
    assert not engine.expires(task_id)


@pytest.mark.parametrize(("max_attempts", "retryable"), [(1, True), (5, False)])
def test_a_permanent_failure_or_the_last_attempt_ends_in_the_dead_letters(
        engine: Engine, max_attempts: int, retryable: bool) -> None:
    worker = engine.worker()
    task_id = engine.submit(max_attempts=max_attempts, payload={"a": 1}, queue="default")
    outcome = failed(engine.take_one(worker), retryable=retryable)
    assert engine.settle(worker, outcome) == ["dead_lettered"]
    (letter,) = engine.dead_letters()
    assert (letter.task_id, letter.attempts_made, letter.last_error_class, letter.last_error,
            letter.original_queue, letter.payload, letter.retryable, letter.worker_id) == (
        task_id, 1, "Broken", "it broke", "default", {"a": 1}, retryable, "w")
    assert not engine.expires(task_id)


# RETRY-10
def test_with_dead_lettering_off_it_is_failed_and_begins_to_expire(engine: Engine) -> None:
    quiet = engine.with_settings(dlq_enabled=False)
    worker = engine.worker()
    task_id = engine.submit()
    outcome = failed(engine.take_one(worker), retryable=False)
    assert quiet.settle(worker, outcome) == ["failed"]
    assert engine.letters() == []
    assert engine.expires(task_id)


def test_several_ends_travel_in_one_call_and_are_answered_in_order(engine: Engine) -> None:
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
    first, second, third = engine.take(worker).tasks
    assert engine.settle(worker, failed(first), succeeded(second),
                         failed(third, retryable=False)) == [
        "retrying", "succeeded", "dead_lettered"]


# Fencing ----------------------------------------------------------------------------------------

def by_another_consumer(worker: Identity, taken: Taken) -> tuple[Identity, Taken]:
    return Identity(worker.worker_id, "ffffffff"), taken


def of_another_attempt(worker: Identity, taken: Taken) -> tuple[Identity, Taken]:
    return worker, msgspec.structs.replace(taken, attempt=taken.attempt + 1)


def of_an_earlier_attempt(worker: Identity, taken: Taken) -> tuple[Identity, Taken]:
    return worker, msgspec.structs.replace(taken, attempt=taken.attempt - 1)


def of_another_entry(worker: Identity, taken: Taken) -> tuple[Identity, Taken]:
    milliseconds, _, place = taken.entry_id.partition("-")
    return worker, msgspec.structs.replace(taken, entry_id=f"{milliseconds}-{int(place) + 1}")


NOT_THE_HOLDER = [by_another_consumer, of_another_attempt, of_an_earlier_attempt, of_another_entry]


@pytest.mark.parametrize("end", [succeeded, failed,
                                 lambda taken: failed(taken, retryable=False)],
                         ids=["success", "retryable", "permanent"])
@pytest.mark.parametrize("alter", NOT_THE_HOLDER)
def test_an_end_is_dropped_that_comes(
        engine: Engine, alter: Callable[[Identity, Taken], tuple[Identity, Taken]],
        end: Callable[[Taken], Outcome]) -> None:
    engine.submit()
    engine.lose_holder()
    worker = engine.worker()
    taken = engine.take_one(worker)
    before = engine.dump()
    someone, altered = alter(worker, taken)
    assert engine.settle(someone, end(altered)) == ["superseded"]
    assert engine.dump(notes=False) == before
    assert engine.settle(worker, succeeded(taken)) == ["succeeded"]


def test_a_zombie_changes_nothing_while_its_heir_works_nor_after_it(engine: Engine) -> None:
    engine.submit()
    zombie, heir = engine.worker("zombie"), engine.worker("heir")
    lost = engine.take_one(zombie)
    engine.end_leases()
    taken = engine.take_one(heir)
    for settle_first in (False, True):
        if settle_first:
            engine.settle(heir, succeeded(taken))
        before = engine.dump(notes=False)
        assert engine.settle(zombie, succeeded(lost, b'"zombie"')) == ["superseded"]
        assert engine.settle(zombie, failed(lost, retryable=False)) == ["superseded"]
        assert engine.dump(notes=False) == before


def test_an_end_after_a_release_is_dropped(engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    taken = engine.take_one(worker)
    engine.release(worker)
    assert engine.settle(worker, succeeded(taken)) == ["superseded"]


def test_an_end_sent_again_answers_as_the_first_time_even_when_the_task_went_on(
        engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    first = engine.take_one(worker)
    engine.settle(worker, failed(first))
    engine.make_due(task_id)
    engine.promote()
    second = engine.take_one(worker)
    before = engine.dump()
    assert engine.settle(worker, failed(first)) == ["retrying"]
    assert engine.dump() == before
    engine.settle(worker, succeeded(second))
    assert engine.settle(worker, failed(first)) == ["retrying"]
    assert engine.status(task_id) == "succeeded"


def test_the_first_end_of_an_attempt_counts_and_a_second_one_is_answered_with_it(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    taken = engine.take_one(worker)
    engine.settle(worker, failed(taken, retryable=False))
    before = engine.dump()
    assert engine.settle(worker, succeeded(taken)) == ["dead_lettered"]
    assert engine.dump() == before


def test_a_superseded_outcome_is_announced_once_for_each_attempt(engine: Engine) -> None:
    zombie, heir = engine.worker("zombie"), engine.worker("heir")
    task_id = engine.submit()
    first = engine.take_one(zombie)
    engine.end_leases()
    second = engine.take_one(heir)
    engine.end_leases()
    third = engine.take_one(zombie)
    ear = engine.listen()
    for lost in (first, second, first):
        engine.settle(heir if lost is second else zombie, succeeded(lost))
    engine.settle(zombie, succeeded(third))
    engine.settle(zombie, failed(first))
    assert [(event["type"], event["task_id"], event["attempt"], event["worker_id"])
            for event in ear.heard()] == [
        ("TASK_SUPERSEDED", task_id, 1, "zombie"), ("TASK_SUPERSEDED", task_id, 2, "heir"),
        ("TASK_SUCCEEDED", task_id, 3, "zombie")]


def test_the_outcome_of_a_vanished_task_makes_no_record_and_no_event(engine: Engine) -> None:
    worker = engine.worker()
    taken = engine.take_one(worker) if engine.submit() else None
    assert taken is not None
    engine.redis.delete(engine.keys.task_prefix + taken.task_id)
    ear = engine.listen()
    assert engine.settle(worker, succeeded(taken)) == ["superseded"]
    assert (engine.record(taken.task_id), ear.types()) == ({}, [])


def test_each_end_is_announced_once_with_what_went_wrong(engine: Engine) -> None:
    worker, quiet = engine.worker(), engine.with_settings(dlq_enabled=False)
    for _ in range(4):
        engine.submit()
    good, again, dead, for_good = engine.take(worker).tasks
    ear = engine.listen()
    outcomes = [succeeded(good), failed(again, delay_ms=1234), failed(dead, retryable=False)]
    for _ in range(2):
        engine.settle(worker, *outcomes)
        quiet.settle(worker, failed(for_good, retryable=False))
    assert [(event["type"], event["task_id"], event.get("metadata")) for event in ear.heard()] == [
        ("TASK_SUCCEEDED", good.task_id, None),
        ("TASK_RETRY_SCHEDULED", again.task_id, {"error_class": "Broken", "retry_delay_ms": 1234}),
        ("TASK_DEAD_LETTERED", dead.task_id, {"error_class": "Broken"}),
        ("TASK_FAILED", for_good.task_id, {"error_class": "Broken"})]


def test_an_old_attempts_outcome_does_not_end_a_life_after_the_requeue(engine: Engine) -> None:
    zombie, heir = engine.worker("zombie"), engine.worker("heir")
    task_id = engine.submit()
    lost = engine.take_one(zombie)
    engine.end_leases()
    engine.settle(heir, failed(engine.take_one(heir), retryable=False))
    engine.requeue(task_id)
    taken = engine.take_one(zombie)
    assert (taken.attempt, lost.attempt) == (1, 1)
    assert engine.renew(zombie, lost) == ("ours", [0])
    before = engine.dump(notes=False)
    assert engine.settle(zombie, succeeded(lost)) == ["superseded"]
    assert engine.dump(notes=False) == before
    assert engine.settle(zombie, succeeded(taken)) == ["succeeded"]

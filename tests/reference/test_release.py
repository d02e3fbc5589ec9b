"""The script `release`: what never started is given back, what started is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dtq_reference import calls
from dtq_reference.calls import Identity, Taken

from tests.reference.engine import Engine, succeeded
from tests.reference.test_settle import NOT_THE_HOLDER


# STOP-07
def test_what_never_started_waits_again_on_the_same_entry_with_its_attempt_unspent(
        engine: Engine) -> None:
    task_id = engine.submit(max_attempts=1)
    leaver = engine.worker("leaver")
    before = engine.take_one(leaver)
    engine.release(leaver)
    assert engine.status(task_id) == "queued"
    after = engine.take_one(engine.worker("other"))
    assert after.hold == before.hold


def test_what_started_is_kept_and_can_be_renewed_and_settled(engine: Engine) -> None:
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
    started, *others = engine.take(worker).tasks
    assert engine.release(worker, started) == [True]
    assert engine.pending() == {started.task_id: worker.consumer,
                                **{taken.task_id: "released" for taken in others}}
    assert engine.renew(worker, started)[1] == [1]
    assert engine.settle(worker, succeeded(started)) == ["succeeded"]


# DLV-26
def test_what_the_process_never_saw_is_given_back_too(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.take(worker)  # its answer is lost
    engine.release(worker)
    assert engine.pending() == {task_id: "released"}


def test_work_of_others_is_left_alone(engine: Engine) -> None:
    leaver, other = engine.worker("leaver"), engine.worker("other")
    engine.submit()
    engine.take_one(other)
    before = engine.pending()
    engine.release(leaver)
    assert engine.pending() == before


@pytest.mark.parametrize("alter", NOT_THE_HOLDER)
def test_nothing_is_given_back_in_the_name_of_another_holder_and_a_start_is_not_its_own(
        engine: Engine, alter: Callable[[Identity, Taken], tuple[Identity, Taken]]) -> None:
    engine.submit()
    engine.lose_holder()
    worker = engine.worker()
    taken = engine.take_one(worker)
    someone, altered = alter(worker, taken)
    assert engine.release(someone, altered) == [False]
    if someone != worker:
        assert engine.pending() == {taken.task_id: worker.consumer}
        assert engine.settle(worker, succeeded(taken)) == ["succeeded"]


def test_a_release_sent_again_does_not_take_the_task_from_its_next_holder(engine: Engine) -> None:
    old = engine.worker("w")
    engine.submit()
    engine.take_one(old)
    engine.release(old)
    new = engine.worker("w")
    taken = engine.take_one(new)
    before = engine.dump()
    engine.release(old)
    assert engine.dump() == before
    assert engine.settle(new, succeeded(taken)) == ["succeeded"]


def test_a_process_that_has_lost_its_lease_gives_nothing_back(engine: Engine) -> None:
    zombie, heir = engine.worker("zombie"), engine.worker("heir")
    engine.submit()
    engine.take_one(zombie)
    engine.end_leases()
    taken = engine.take_one(heir)
    engine.release(zombie)
    assert engine.pending() == {taken.task_id: heir.consumer}


def test_the_hash_of_a_successor_is_not_marked_as_draining(engine: Engine) -> None:
    old, new = engine.worker("w"), engine.worker("w")
    engine.release(old)
    assert engine.take(new).state == "ours"


def test_each_task_that_is_given_back_is_announced_once(engine: Engine) -> None:
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
    started, *others = engine.take(worker).tasks
    ear = engine.listen()
    engine.release(worker, started)
    engine.release(worker, started)
    assert [(event["type"], event["task_id"]) for event in ear.heard()] == [
        ("TASK_QUEUED", taken.task_id) for taken in others]


def test_what_was_to_be_cancelled_is_told_as_ended(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.take(worker)
    engine.cancel(task_id)
    reply = engine.run(engine.release_call(worker))
    assert calls.read_release(reply) == [[b"default", b"echo_task", b"cancelled"]]
    assert engine.status(task_id) == "cancelled"

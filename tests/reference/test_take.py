"""The script `take`: order, capacity, attempt numbers, spent budgets, orphans, who may take,
time to live, and events."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from dtq_reference import calls
from dtq_reference.calls import Identity, Taken
from dtq_reference.keys import GROUP, LEVELS

from tests.reference.engine import Engine, failed, succeeded


def ids(tasks: list[Taken]) -> list[str]:
    return [taken.task_id for taken in tasks]


# Order and capacity -----------------------------------------------------------------------------

# PRIO-03
def test_levels_are_served_from_nine_to_nought_and_the_oldest_first_within_one(
        engine: Engine) -> None:
    submitted = [(priority, engine.submit(priority=priority))
                 for priority in (0, 9, 4, 9, 0, *LEVELS)]
    expected = [task_id for _, task_id in sorted(submitted, key=lambda pair: -pair[0])]
    assert ids(engine.take(engine.worker(), room=50).tasks) == expected


def test_ended_leases_released_and_new_work_stand_in_one_order(engine: Engine) -> None:
    low_lost, released, high_lost = (engine.submit(priority=priority) for priority in (2, 5, 8))
    leaver, dying = engine.worker("leaver"), engine.worker("dying")
    engine.take(dying, room=1)
    started = engine.take(leaver, room=1).tasks
    assert ids(started) == [released]
    engine.take(dying, room=1, in_hand=[])
    engine.release(leaver)
    engine.end_leases()
    new = {priority: engine.submit(priority=priority) for priority in (9, 8, 5, 2, 0)}
    taken = engine.take(engine.worker(), room=50).tasks
    assert ids(taken) == [new[9], high_lost, new[8], released, new[5], low_lost, new[2], new[0]]


def test_a_lower_level_waits_while_a_higher_one_has_an_ended_lease(engine: Engine) -> None:
    lost = engine.submit(priority=9)
    engine.lose_holder()
    engine.submit(priority=8)
    assert engine.take_one(engine.worker()).task_id == lost


def test_ended_leases_are_left_alone_by_a_take_that_does_not_look_for_them(
        engine: Engine) -> None:
    lost = engine.submit()
    engine.lose_holder()
    new = engine.submit()
    worker = engine.worker()
    reply = engine.take(worker, reap=False)
    assert ids(reply.tasks) == [new]
    assert ids(engine.take(worker, in_hand=reply.tasks).tasks) == [lost]


def test_a_live_lease_is_not_taken(engine: Engine) -> None:
    engine.submit()
    engine.take_one(engine.worker("holder"))
    assert engine.take(engine.worker("other")).tasks == []


@pytest.mark.parametrize("room", [1, 2, 3, 4])
def test_at_most_room_tasks_are_taken_whatever_waits_and_the_rest_is_untouched(
        engine: Engine, room: int) -> None:
    for priority in (9, 5):
        engine.submit(priority=priority)
    engine.take(engine.worker("lost"))
    engine.end_leases()
    for priority in (9, 5):
        engine.submit(priority=priority)
    worker = engine.worker()
    assert len(engine.take(worker, room=room).tasks) == room
    assert sum(holder == worker.consumer for holder in engine.pending().values()) == room
    assert sum(task.status == "running" and task.worker_id == "w"
               for task in engine.tasks()) == room


def test_of_several_ended_leases_on_one_level_the_oldest_are_taken_and_no_more(
        engine: Engine) -> None:
    submitted = [engine.submit() for _ in range(3)]
    engine.take(engine.worker("lost"))
    engine.end_leases()
    assert ids(engine.take(engine.worker(), room=2).tasks) == submitted[:2]
    assert engine.record(submitted[2])["attempt"] == "1"


def test_a_process_is_not_given_again_what_it_has_in_hand_even_if_its_lease_has_ended(
        engine: Engine) -> None:
    engine.submit()
    worker = engine.worker()
    in_hand = [engine.take_one(worker)]
    engine.end_leases()
    assert engine.take(worker, in_hand=in_hand).tasks == []
    assert engine.take_one(engine.worker("other")).attempt == 2


def test_the_doorbell_gets_its_ids_only_when_nothing_more_was_to_be_had(engine: Engine) -> None:
    worker = engine.worker()
    assert engine.take(worker).last_ids == ["0-0"] * 10
    engine.submit(priority=9)
    engine.submit(priority=9)
    first = engine.take(worker, room=1)
    assert first.last_ids == []
    second = engine.take(worker, room=2, in_hand=first.tasks)
    assert second.last_ids == [second.tasks[0].entry_id, *["0-0"] * 9]


# Attempt numbers --------------------------------------------------------------------------------

def test_new_work_keeps_its_attempt_number(engine: Engine) -> None:
    engine.submit()
    assert engine.take_one(engine.worker()).attempt == 1


def test_a_released_task_keeps_its_attempt_number_and_counts_no_loss(engine: Engine) -> None:
    task_id = engine.submit()
    engine.lose_holder()
    leaver = engine.worker("leaver")
    assert engine.take_one(leaver).attempt == 2
    engine.release(leaver)
    assert engine.take_one(engine.worker()).attempt == 2
    assert engine.record(task_id)["losses"] == "1"


# DLV-22
def test_an_ended_lease_raises_the_attempt_number_each_time(engine: Engine) -> None:
    engine.submit()
    assert [engine.lose_holder().attempt for _ in range(5)] == [1, 2, 3, 4, 5]


def test_a_take_whose_answer_was_lost_is_given_again_with_the_same_attempt_before_new_work(
        engine: Engine) -> None:
    lost = engine.submit(priority=0)
    worker = engine.worker()
    first = engine.take(worker)
    new = engine.submit(priority=9)
    again = engine.take(worker)
    assert ids(again.tasks) == [lost, new]
    assert [taken.attempt for taken in again.tasks] == [1, 1]
    assert again.tasks[0].hold == first.tasks[0].hold
    assert "losses" not in engine.record(lost) or engine.record(lost)["losses"] == "0"


def test_a_lost_answer_is_given_again_though_an_earlier_attempt_is_in_hand(engine: Engine) -> None:
    mine, other, _ = engine.worker("mine"), engine.worker("other"), engine.submit()
    old = engine.take_one(mine)
    engine.end_leases()
    engine.take_one(other)
    engine.release(other)
    for _ in range(2):  # the first answer is lost
        assert engine.take_one(mine, in_hand=[old]).attempt == 2


def test_a_lost_answer_is_given_again_even_when_there_is_no_room_for_more(engine: Engine) -> None:
    for _ in range(3):
        engine.submit()
    worker = engine.worker()
    first = engine.take(worker, room=2)
    assert engine.take(worker, room=2).tasks == first.tasks
    assert len(engine.pending()) == 2


def test_what_is_given_again_has_a_fresh_lease(engine: Engine) -> None:
    engine.submit()
    worker = engine.worker()
    engine.take(worker)
    engine.end_leases()
    assert [taken.attempt for taken in engine.take(worker).tasks] == [1]
    assert engine.take(engine.worker("other")).tasks == []


def test_a_retry_is_a_new_entry_with_the_next_attempt(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit(priority=7)
    first = engine.take_one(worker)
    engine.settle(worker, failed(first))
    engine.make_due(task_id)
    engine.promote()
    again = engine.take_one(worker)
    assert (again.attempt, again.level) == (2, first.level)
    assert again.entry_id != first.entry_id


# Spent budgets and orphans ----------------------------------------------------------------------

def test_a_spent_budget_ends_in_the_dead_letters_without_being_handed_out(engine: Engine) -> None:
    task_id = engine.submit(max_attempts=2)
    engine.lose_holder()
    engine.lose_holder()
    assert engine.take(engine.worker()).tasks == []
    record = engine.record(task_id)
    assert (record["status"], record["attempt"], record["error_class"]) == (
        "dead_lettered", "2", "WorkerLost")
    (letter,) = engine.dead_letters()
    assert (letter.task_id, letter.attempts_made, letter.last_error_class, letter.retryable) == (
        task_id, 2, "WorkerLost", False)
    assert engine.pending() == {}
    assert not engine.expires(task_id)


def test_a_spent_budget_with_dead_lettering_off_is_failed_and_begins_to_expire(
        engine: Engine) -> None:
    task_id = engine.submit(max_attempts=1)
    engine.lose_holder()
    quiet = engine.with_settings(dlq_enabled=False)
    assert quiet.take(engine.worker()).tasks == []
    assert (engine.status(task_id), engine.letters()) == ("failed", [])
    assert engine.expires(task_id)


def test_a_spent_budget_takes_no_room(engine: Engine) -> None:
    engine.submit(priority=9, max_attempts=1)
    engine.lose_holder()
    bystander = engine.submit(priority=0)
    assert engine.take_one(engine.worker()).task_id == bystander


def test_a_released_last_attempt_is_not_spent(engine: Engine) -> None:
    task_id = engine.submit(max_attempts=1)
    leaver = engine.worker("leaver")
    engine.take_one(leaver)
    engine.release(leaver)
    assert engine.take_one(engine.worker()).task_id == task_id


@pytest.mark.parametrize("was_read", [False, True])
def test_an_entry_whose_task_has_no_record_is_dead_lettered_and_never_handed_out(
        engine: Engine, was_read: bool) -> None:
    task_id = engine.submit(payload={"who": "nobody"})
    if was_read:
        engine.lose_holder()
    engine.redis.delete(engine.keys.task_prefix + task_id)
    assert engine.take(engine.worker()).tasks == []
    (letter,) = engine.dead_letters()
    assert (letter.task_id, letter.last_error_class, letter.attempts_made, letter.payload) == (
        task_id, "OrphanEntry", 0, {"who": "nobody"})
    assert engine.redis.xlen(engine.keys.stream("default", 5)) == 0
    assert engine.record(task_id) == {}


def test_with_dead_lettering_off_an_orphan_is_acknowledged_and_deleted(engine: Engine) -> None:
    engine.redis.delete(engine.keys.task_prefix + engine.submit())
    quiet = engine.with_settings(dlq_enabled=False)
    assert quiet.take(engine.worker()).tasks == []
    assert (engine.letters(), engine.pending()) == ([], {})
    assert engine.redis.xlen(engine.keys.stream("default", 5)) == 0


# DLV-21
def test_an_entry_of_a_finished_task_is_absorbed_and_announced_once(engine: Engine) -> None:
    worker, task_id = engine.worker(), engine.submit()
    stream = engine.keys.stream("default", 5)
    (_, fields), = engine.redis.xrange(stream)
    engine.settle(worker, succeeded(engine.take_one(worker)))
    engine.redis.xadd(stream, fields)
    ear = engine.listen()
    for _ in range(2):
        assert engine.take(worker).tasks == []
    assert (engine.status(task_id), engine.redis.xlen(stream)) == ("succeeded", 0)
    assert [(event["type"], event["task_id"]) for event in ear.heard()] == [
        ("TASK_DUPLICATE_ABSORBED", task_id)]


def test_a_second_entry_of_a_waiting_task_is_not_handed_out(engine: Engine) -> None:
    task_id, stream = engine.submit(), engine.keys.stream("default", 5)
    (_, fields), = engine.redis.xrange(stream)
    engine.redis.xadd(stream, fields)
    assert ids(engine.take(engine.worker()).tasks) == [task_id]
    assert (engine.redis.xlen(stream), len(engine.pending())) == (1, 1)


# A task that runs alone -------------------------------------------------------------------------

def test_a_task_that_lost_two_holders_is_handed_out_alone(engine: Engine) -> None:
    poison = engine.lost_twice()
    engine.submit()
    reply = engine.take(engine.worker())
    assert ids(reply.tasks) == [poison]
    assert (reply.tasks[0].alone, reply.tasks[0].attempt, reply.last_ids) == (True, 3, [])


def test_a_task_that_lost_one_holder_is_not_alone(engine: Engine) -> None:
    engine.submit()
    engine.lose_holder()
    engine.submit()
    assert [taken.alone for taken in engine.take(engine.worker()).tasks] == [False, False]


# DLV-34
def test_a_process_with_work_in_hand_gets_neither_it_nor_what_stands_after_it(
        engine: Engine) -> None:
    poison = engine.lost_twice(priority=5)
    busy = engine.worker("busy")
    before = engine.submit(priority=9)
    in_hand = [engine.take_one(busy)]
    assert ids(in_hand) == [before]
    second = engine.submit(priority=9)
    engine.submit(priority=5)
    engine.submit(priority=0)
    reply = engine.take(busy, in_hand=in_hand)
    assert (ids(reply.tasks), reply.blocked, reply.last_ids) == ([second], True, [])
    assert engine.record(poison)["attempt"] == "2"
    assert ids(engine.take(engine.worker("idle")).tasks) == [poison]


def test_it_is_not_handed_out_in_one_take_with_what_stands_before_it(engine: Engine) -> None:
    engine.lost_twice(priority=3)
    before = engine.submit(priority=9)
    engine.submit(priority=0)
    reply = engine.take(engine.worker())
    assert (ids(reply.tasks), reply.blocked) == ([before], True)


# DLV-39
def test_what_was_read_too_far_behind_it_waits_and_is_found_by_another(engine: Engine) -> None:
    poison = engine.lost_twice(max_attempts=9)
    third = engine.worker("third")
    engine.settle(third, failed(engine.take_one(third)))
    busy = engine.worker("busy")
    engine.submit(priority=9)
    in_hand = [engine.take_one(busy)]
    engine.make_due(poison)
    engine.promote()
    behind = engine.submit()
    reply = engine.take(busy, in_hand=in_hand)
    assert (reply.tasks, reply.blocked) == ([], True)
    assert {engine.pending()[poison], engine.pending()[behind]} == {"released"}
    first, second = engine.worker("first"), engine.worker("second")
    assert ids(engine.take(first).tasks) == [poison]
    assert ids(engine.take(second).tasks) == [behind]
    assert engine.record(poison)["attempt"] == "4"


def test_a_new_entry_that_must_wait_is_not_passed_by_when_the_take_is_sent_again(
        engine: Engine) -> None:
    victim = engine.lost_twice(max_attempts=9)
    third = engine.worker("third")
    engine.settle(third, failed(engine.take_one(third)))
    process = engine.worker()
    engine.submit(priority=9)
    in_hand = engine.take_one(process)
    engine.make_due(victim)
    assert engine.promote().promoted == 1
    engine.submit(priority=1)
    call = engine.take_call(process, in_hand=[in_hand], reap=False)
    first, after_first = engine.run(call), engine.dump()
    assert calls.read_take(first).blocked
    assert calls.read_take(first).tasks == []
    assert engine.run(call) == first
    assert engine.dump() == after_first


def test_its_lost_answer_is_given_again_alone(engine: Engine) -> None:
    engine.lost_twice()
    engine.submit()
    worker = engine.worker()
    assert engine.take(worker).tasks == engine.take(worker).tasks
    assert len([1 for holder in engine.pending().values() if holder == worker.consumer]) == 1


# The group is lost ------------------------------------------------------------------------------

def test_when_the_group_is_made_anew_a_running_entry_goes_back_to_its_holder(
        engine: Engine) -> None:
    holder = engine.worker("holder")
    task_id = engine.submit(max_attempts=1)
    taken = engine.take_one(holder)
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, GROUP)
    other = engine.worker("other")
    assert engine.take(other).tasks == []
    assert engine.pending() == {task_id: holder.consumer}
    assert engine.renew(holder, taken) == ("ours", [1])
    assert engine.settle(holder, succeeded(taken)) == ["succeeded"]


def test_a_group_that_is_gone_is_missed_though_there_is_no_entry(engine: Engine) -> None:
    worker = engine.worker()
    engine.redis.xgroup_destroy(engine.keys.stream("default", 0), GROUP)
    with pytest.raises(redis.ResponseError, match="NOGROUP"):
        engine.take(worker)


def test_given_back_to_its_holder_it_has_a_fresh_lease_and_is_redelivered_after_that(
        engine: Engine) -> None:
    engine.submit()
    engine.take_one(engine.worker("holder"))
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, GROUP)
    other = engine.worker("other")
    engine.take(other)
    assert engine.take(other).tasks == []
    engine.end_leases()
    assert engine.take_one(other).attempt == 2


def test_when_the_group_is_made_anew_a_lost_answer_is_given_again_in_the_same_take(
        engine: Engine) -> None:
    worker = engine.worker()
    engine.submit()
    lost = engine.take(worker).tasks
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, GROUP)
    engine.run(engine.hello(worker, again=True))
    assert engine.take(worker).tasks == engine.take(worker).tasks == lost


# Who may take -----------------------------------------------------------------------------------

def drains(engine: Engine, worker: Identity) -> None:
    engine.release(worker)


def has_said_goodbye(engine: Engine, worker: Identity) -> None:
    engine.goodbye(worker)


def is_replaced(engine: Engine, worker: Identity) -> None:
    engine.worker(worker.worker_id)


def is_forgotten(engine: Engine, worker: Identity) -> None:
    engine.redis.delete(engine.keys.worker_prefix + worker.worker_id)


@pytest.mark.parametrize(("befalls", "state"), [
    (drains, "leaving"), (has_said_goodbye, "leaving"), (is_replaced, "other"),
    (is_forgotten, "absent")])
def test_nothing_is_handed_to_a_process_that(
        engine: Engine, befalls: Callable[[Engine, Identity], None], state: str) -> None:
    task_id = engine.submit()
    worker = engine.worker()
    befalls(engine, worker)
    reply = engine.take(worker)
    assert (reply.state, reply.tasks) == (state, [])
    assert (engine.status(task_id), engine.pending()) == ("queued", {})


# Time to live -----------------------------------------------------------------------------------

def queued(engine: Engine) -> str:
    return engine.submit(metadata={"ttl_seconds": 60}, idempotency_key="k")


def lost(engine: Engine) -> str:
    task_id = queued(engine)
    engine.lose_holder()
    return task_id


def released(engine: Engine) -> str:
    return engine.released(metadata={"ttl_seconds": 60}, idempotency_key="k")


@pytest.mark.parametrize("waits", [queued, lost, released])
def test_no_attempt_begins_when_the_time_of_a_task_is_over_that_is(
        engine: Engine, waits: Callable[[Engine], str]) -> None:
    task_id = waits(engine)
    worker = engine.worker()
    engine.expire(task_id)
    ear = engine.listen()
    reply = engine.take(worker)
    assert (reply.tasks, reply.ended) == ([], [[b"default", b"echo_task", b"expired"]])
    assert (engine.status(task_id), engine.pending(), engine.depth()) == ("expired", {}, 0)
    assert (engine.expires(task_id), engine.key_record("k")["state"]) == (True, "failed")
    assert ear.types() == ["TASK_EXPIRED"]


def test_an_attempt_that_began_is_not_interrupted_by_the_time_to_live(engine: Engine) -> None:
    worker = engine.worker()
    task_id = queued(engine)
    taken = engine.take_one(worker)
    engine.expire(task_id)
    assert engine.take(worker).tasks == [taken]  # its answer had been lost
    assert engine.renew(worker, taken) == ("ours", [1])
    assert engine.settle(worker, succeeded(taken)) == ["succeeded"]


# Events ------------------------------------------------------------------------------------------

def test_each_start_is_announced_redeliveries_too_and_an_answer_given_again_is_not(
        engine: Engine) -> None:
    first, second = engine.worker("first"), engine.worker("second")
    task_id = engine.submit()
    ear = engine.listen()
    engine.take(first)
    engine.take(first)
    engine.end_leases()
    engine.take(second)
    assert [(event["type"], event["task_id"], event["attempt"], event["worker_id"])
            for event in ear.heard()] == [
        ("TASK_STARTED", task_id, 1, "first"), ("TASK_STARTED", task_id, 2, "second")]

"""The script `pause`: of a paused queue nothing is taken; everything else goes on."""

from __future__ import annotations

from tests.reference.engine import ACTOR, Engine, failed, refused, succeeded


def test_nothing_new_is_taken_until_the_queue_is_resumed(engine: Engine) -> None:
    task_id = engine.submit()
    worker = engine.worker()
    engine.pause()
    reply = engine.take(worker)
    assert (reply.state, reply.tasks, reply.last_ids) == ("paused", [], [])
    assert (engine.status(task_id), engine.pending()) == ("queued", {})
    engine.resume()
    assert engine.take_one(worker).task_id == task_id
    assert not engine.redis.exists(engine.keys.paused("default"))


def test_nothing_is_redelivered_neither_ended_leases_nor_what_was_released(
        engine: Engine) -> None:
    lost = engine.submit()
    engine.lose_holder()
    released = engine.released()
    engine.pause()
    before = engine.pending()
    assert engine.take(engine.worker()).tasks == []
    assert engine.pending() == before
    engine.resume()
    assert {taken.task_id for taken in engine.take(engine.worker()).tasks} == {lost, released}


def test_a_spent_budget_and_an_ended_time_to_live_wait_for_the_end_of_the_pause(
        engine: Engine) -> None:
    spent = engine.submit(max_attempts=1)
    engine.lose_holder()
    engine.pause()
    engine.take(engine.worker())
    assert engine.status(spent) == "running"
    engine.resume()
    engine.take(engine.worker())
    assert engine.status(spent) == "dead_lettered"


# PAUSE-04
def test_a_take_whose_answer_was_lost_is_given_again(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    engine.take(worker)  # its answer is lost
    engine.submit()
    engine.pause()
    reply = engine.take(worker)
    assert [taken.task_id for taken in reply.tasks] == [task_id]
    assert (reply.state, reply.tasks[0].attempt) == ("paused", 1)


# PAUSE-03
def test_submission_promotion_renewal_settlement_and_release_go_on(engine: Engine) -> None:
    worker = engine.worker()
    for _ in range(3):
        engine.submit()
    good, bad, unstarted = engine.take(worker).tasks
    engine.pause()
    assert engine.renew(worker, good, bad) == ("ours", [1, 1])
    assert engine.settle(worker, succeeded(good), failed(bad)) == ["succeeded", "retrying"]
    engine.make_due(bad.task_id)
    assert engine.promote().promoted == 1
    engine.release(worker)
    submitted = engine.submit()
    assert {engine.status(each) for each in (bad.task_id, unstarted.task_id, submitted)} == {
        "queued"}


# PAUSE-03
def test_cancellation_and_requeue_go_on(engine: Engine) -> None:
    dead, waits = engine.bury(), engine.submit()
    engine.pause()
    assert engine.cancel(waits) == "cancelled"
    engine.requeue(dead)
    assert engine.status(dead) == "queued"


def test_only_that_queue_is_paused_and_its_numbers_say_so(engine: Engine) -> None:
    engine.submit(queue="mail")
    task_id = engine.submit()
    engine.pause("mail")
    assert engine.take_one(engine.worker()).task_id == task_id
    assert {each.queue: each.paused for each in engine.do(engine.operations.queues())} == {
        "default": False, "mail": True}


def test_a_change_is_audited_and_announced_once(engine: Engine) -> None:
    ear = engine.listen()
    for _ in range(2):
        engine.pause()
    for _ in range(2):
        engine.resume()
    assert [(event["type"], event["queue"], event["metadata"]) for event in ear.heard()] == [
        ("CONFIGURATION_CHANGED", "default", {"paused": True}),
        ("CONFIGURATION_CHANGED", "default", {"paused": False})]
    assert [(line["actor"], line["action"], line["task_id"], line["request_id"])
            for line in engine.audited()] == [
        (ACTOR.name, action, "", ACTOR.request_id) for action in ("pause", "resume")]


def test_a_name_that_no_queue_can_have_is_refused(engine: Engine) -> None:
    for name in ("", "Mail", "a b", "a:b", "x" * 65, "\udcff"):
        with refused("INVALID_TASK", "is not a queue's name"):
            engine.pause(name)
        with refused("INVALID_TASK", "is not a queue's name"):
            engine.resume(name)
    assert engine.dump() == {}

"""The steps of lives: in words, and with the time that a target has for them."""

from __future__ import annotations

from dtq_conformance.steps import (
    DEAF_MS,
    LEADER_MS,
    SORTS,
    Cancel,
    Discard,
    Drain,
    KillHolder,
    Pause,
    Purge,
    PurgeLetters,
    Requeue,
    Resume,
    StopHolder,
    Submit,
    SubmitAgain,
    SubmitItsKey,
    Wait,
    recovery_more_ms,
)
from dtq_conformance.target import Submission


def test_a_life_can_be_read() -> None:
    told = [str(step) for step in (
        Submit(1, "holding_its_last"), SubmitAgain(1), SubmitItsKey(2), KillHolder(1),
        StopHolder(1), Drain(), Cancel(1), Requeue(1), Discard(1), PurgeLetters(1), Purge(),
        Pause(), Resume(), Wait())]
    assert told == [
        "submit task 1, with 2 attempts, which hold for 1500 ms", "submit task 1 again",
        "submit another task with the key of task 2",
        "kill the worker that holds task 1, as soon as it has started it",
        "stop the worker that holds task 1, and continue it when the task is executed elsewhere",
        "start a worker, and ask the busiest of the others to stop", "cancel task 1",
        "requeue task 1, once it is over", "discard the dead letter of task 1, once it is over",
        "purge the dead letters, once task 1 is over", "purge the queue", "pause the queue",
        "resume the queue", "wait until all tasks are over"]


def test_every_sort_can_be_submitted() -> None:
    for sort in SORTS.values():
        assert Submission(task_id="a" * 32, payload={"steps": list(sort.steps)}, **sort.fields)


def test_what_waits_for_its_time_has_longer_when_the_leader_may_have_died() -> None:
    held, delayed = Submit(1, "holding"), Submit(2, "delayed")
    assert recovery_more_ms((held, KillHolder(1), delayed)) == LEADER_MS
    assert recovery_more_ms((held, delayed, StopHolder(1))) == LEADER_MS
    assert recovery_more_ms((held, KillHolder(1))) == recovery_more_ms((held, delayed)) == 0


def test_what_waits_for_deaf_tasks_has_as_much_longer() -> None:
    assert recovery_more_ms((Submit(1, "deaf"), Submit(2, "deaf_failing"))) == 2 * DEAF_MS

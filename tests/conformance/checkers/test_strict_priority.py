"""strict_priority: of two tasks that both waited, the one of the higher level was taken first."""

from __future__ import annotations

import random
from typing import Any

import pytest
from dtq_conformance.checkers.strict_priority import check
from dtq_conformance.history import Process, Record

from tests.conformance.histories import (
    Part,
    T,
    U,
    accuses,
    born,
    gone,
    history,
    killed,
    look,
    ns,
    ran,
    says,
    start,
    submit,
)

ALONE = born(1, at=1000, concurrency=1)
"""The only worker, started when everything had been accepted."""


def task(number: int) -> str:
    return f"{number:032x}"


def crowd(count: int = 100, *, at: int = 3000, level: int = 5) -> list[Any]:
    """Tasks of one level that waited all the time, executed one after the other from `at` on."""
    return [[submit(task(number), priority=level),
             ran(at + 10 * number, at + 10 * number + 5, task(number))]
            for number in range(count)]


def told(*parts: Any) -> str:
    return says(check, *parts).get("PRIO-01", "")


def told_again(*parts: Any) -> str:
    return says(check, *parts).get("PRIO-02", "")


def test_the_higher_level_first_holds_and_tells_how_many_pairs_were_judged() -> None:
    assert says(check, submit(T, priority=9), ALONE, ran(1100, 1110), crowd()) == {
        "PRIO-01": "holds 100"}


def test_a_lower_task_taken_while_a_higher_one_waited_is_a_violation() -> None:
    wrong = [submit(T, at=10, priority=2), submit(U, at=20, priority=7), ALONE,
             ran(1100, 1110, T), ran(1120, 1130, U)]
    assert told(wrong) == "violated 1"
    assert accuses(check, "PRIO-01", *wrong) == (
        f"Task {T} of priority 2 was taken between 1 000 ms and its start at 1 100 ms (attempt 1 "
        f"by worker-1 (pid 101)), while task {U} of priority 7, accepted at 20 ms, waited; that "
        "one started at 1 120 ms.")


def test_one_finding_names_the_most_urgent_of_those_that_were_passed_over() -> None:
    wrong = [submit(T, priority=0), ALONE, ran(1100, 1110), crowd(), submit(U, priority=9),
             ran(2000, 2010, U)]
    assert told(wrong) == "violated 201"
    assert f"task {U} of priority 9" in accuses(check, "PRIO-01", *wrong)
    assert "101 tasks of higher levels waited." in accuses(check, "PRIO-01", *wrong)


def test_fewer_than_a_hundred_pairs_are_unknown() -> None:
    few = [submit(T, priority=9), ALONE, ran(1100, 1110), crowd(99)]
    assert told(few) == "unknown 99"
    assert accuses(check, "PRIO-01", *few).startswith("Only 99 pairs")


@pytest.mark.parametrize("accepted", [1050, 1104, 1115])
def test_what_was_accepted_after_the_worker_was_free_proves_nothing(accepted: int) -> None:
    assert told(submit(T, priority=2), submit(U, at=accepted, priority=7), ALONE,
                ran(1100, 1110, T), ran(1120, 1130, U)) == ""


def test_the_take_lies_after_the_end_of_the_task_before() -> None:
    before = [submit(task(1), priority=5), ran(1100, 1200, task(1))]
    later = [submit(T, priority=2), ran(1210, 1220), ran(1230, 1240, U)]
    assert told(ALONE, before, later, submit(U, at=1190, priority=5)) == "violated 2"
    assert told(ALONE, before, later, submit(U, at=1201, priority=5)) == "unknown 1"


def test_tasks_of_one_level_are_no_pair() -> None:
    assert says(check, submit(T), submit(U), ALONE, ran(1100, 1110), ran(1120, 1130, U)) == {}


@pytest.mark.parametrize("workers", [
    born(1, at=1000, concurrency=2), born(1, at=1000),
    [born(1, at=1000, concurrency=1), born(2, at=1050, concurrency=1)],
    [born(2, at=5, concurrency=1), born(1, at=1000, concurrency=1), gone(2, 1020, code=0)]])
def test_only_one_worker_of_concurrency_one_proves_anything(workers: list[Record]) -> None:
    assert says(check, submit(T, priority=2), submit(U, priority=7), workers,
                ran(1100, 1110, T), ran(1120, 1130, U)) == {}


def test_executions_that_overlap_were_all_taken_before_the_first_of_them() -> None:
    at_once = [submit(T, priority=9), submit(U, priority=2), submit(task(1), priority=9), ALONE,
               ran(1100, 1200, T), ran(1101, 1201, U), ran(1300, 1310, task(1))]
    assert told(at_once) == "violated 2"


def test_a_task_that_never_started_was_not_passed_over_for_certain() -> None:
    assert told(submit(T, priority=2), submit(U, priority=7), ALONE, ran(1100, 1110, T)) == ""


def test_a_submission_without_an_answer_proves_nothing() -> None:
    assert told(submit(T, priority=2), submit(U, outcome="unknown", priority=7), ALONE,
                ran(1100, 1110, T), ran(1120, 1130, U)) == ""


# Within a level ---------------------------------------------------------------------------------

def in_turn(count: int, *, level: int = 5, backwards: bool = False) -> list[Any]:
    """Tasks of one level, submitted one after the other, executed in this order or backwards."""
    places = range(count)
    return [[submit(task(number), at=10 + number, priority=level),
             ran(2000 + 10 * place, 2005 + 10 * place, task(number))]
            for place, number in enumerate(reversed(places) if backwards else places)]


def told_within(*parts: Any) -> str:
    return says(check, *parts).get("PRIO-03", "")


def test_the_oldest_of_a_level_first_holds_and_tells_how_many_pairs_were_judged() -> None:
    assert says(check, ALONE, in_turn(15)) == {"PRIO-03": "holds 105"}


def test_a_younger_task_taken_while_an_older_one_of_its_level_waited_is_a_violation() -> None:
    wrong = [submit(T, at=10), submit(U, at=20), ALONE, ran(1100, 1110, U), ran(1120, 1130, T)]
    assert told_within(wrong) == "violated 1"
    assert accuses(check, "PRIO-03", *wrong) == (
        f"Task {U} of priority 5 was taken between 1 000 ms and its start at 1 100 ms (attempt 1 "
        f"by worker-1 (pid 101)), while task {T} of priority 5, accepted at 10 ms, waited; that "
        "one started at 1 120 ms.")
    assert "14 older tasks of this level waited." in accuses(
        check, "PRIO-03", ALONE, in_turn(15, backwards=True))


def test_fewer_than_a_hundred_pairs_of_one_level_are_unknown() -> None:
    assert told_within(ALONE, in_turn(14)) == "unknown 91"
    assert "of the same level" in accuses(check, "PRIO-03", ALONE, in_turn(14))


@pytest.mark.parametrize("other", [
    submit(U, at=10), [submit(U, at=5, outcome="unknown"), submit(U, at=20)],
    submit(U, at=20, outcome="unknown"), submit(U, at=20, delay_ms=5)])
def test_which_of_two_is_older_must_be_certain(other: Part) -> None:
    assert told_within(submit(T, at=10), other, ALONE, ran(1100, 1110),
                       ran(1120, 1130, U)) == ""


def test_work_that_was_given_back_is_not_new() -> None:
    assert told_within(submit(T), submit(U, at=20), born(1, at=1, concurrency=1),
                       gone(1, 50, code=0), born(2, at=1000, concurrency=1),
                       ran(1100, 1110, U, by=2), ran(1120, 1130, T, by=2)) == ""


# Redelivered, released and scheduled work -------------------------------------------------------

LOST = [submit(T, priority=4), born(1, at=1, concurrency=1), start(100), killed(1, 300)]
"""A task of level 4 loses its holder at 300; its lease has ended, and counts, at 1500."""


def again_at(at: int) -> list[Record]:
    return ran(at, at + 5, attempt=2, by=2)


@pytest.mark.parametrize(("level", "at", "status"), [
    (5, 9000, "holds 100"), (5, 2000, "violated 100"),
    (3, 2000, "holds 100"), (3, 9000, "violated 100")])
def test_redelivered_work_keeps_its_place(level: int, at: int, status: str) -> None:
    others = [[submit(task(number), at=200, priority=level),
               ran(3000 + 10 * number, 3005 + 10 * number, task(number), by=2)]
              for number in range(100)]
    assert told_again(LOST, born(2, at=1600, concurrency=1), again_at(at), others) == status


def test_an_ended_lease_need_not_be_seen_before_one_reap_interval() -> None:
    other = [submit(U, at=20, priority=3), ran(1700, 1710, U, by=2)]
    assert told_again(LOST, other, again_at(2000), born(2, at=1490, concurrency=1)) == ""
    assert told_again(LOST, other, again_at(2000), born(2, at=1501, concurrency=1)) \
        == "violated 1"


@pytest.mark.parametrize(("began", "said"), [(199, "violated 1"), (400, "")])
def test_no_lease_counts_as_ended_while_the_server_is_younger_than_one(began: int,
                                                                       said: str) -> None:
    server = Process(at_ns=ns(began), event="start", role="broker", name="broker", pid=7)
    other = [submit(U, at=420, priority=3), ran(2500, 2510, U, by=2)]
    assert told_again(server, LOST, other, again_at(2600),
                      born(2, at=2450, concurrency=1)) == said


def test_what_a_worker_may_have_had_in_hand_waits_only_when_it_is_surely_back() -> None:
    """A worker that was killed between two tasks may have taken one that nobody saw."""
    tasks = [submit(T, priority=2), submit(U, priority=7), ran(1100, 1110, T, by=2),
             ran(1820, 1830, U, by=2), born(1, at=1, concurrency=1)]
    assert says(check, tasks, killed(1, 50), born(2, at=1000, concurrency=1)) == {}
    assert says(check, tasks, gone(1, 50, code=0), born(2, at=240, concurrency=1)) == {}
    assert says(check, tasks, gone(1, 50, code=0), born(2, at=251, concurrency=1)) == {
        "PRIO-02": "violated 1"}


def test_a_worker_that_died_in_a_handler_had_nothing_else_in_hand() -> None:
    tasks = [submit(U, priority=7), submit(task(1), priority=2)]
    assert told(LOST, tasks, born(2, at=400, concurrency=1),
                ran(500, 510, task(1), by=2), ran(520, 530, U, by=2)) == "violated 1"


RETRIED = [submit(T, priority=7), ALONE, ran(1100, 1110, T, "failed"),
           submit(U, priority=2), ran(1400, 1410, U), ran(1420, 1430, T, attempt=2)]


@pytest.mark.parametrize(("seen_ms", "before_ms", "status"), [
    (1300, 1350, "violated 2"), (1360, 1350, "unknown 1"), (1105, 1350, "unknown 1")])
def test_a_retry_counts_from_when_it_was_seen_queued(seen_ms: int, before_ms: int,
                                                     status: str) -> None:
    busy = [submit(task(1), at=1112, priority=9), ran(1115, before_ms, task(1))]
    seen = look(T, "queued", at=seen_ms, attempt=2)
    # the other pair is T and U at the worker's start
    assert told_again(RETRIED, busy, seen) == status.replace("unknown 1", "")\
        .replace("violated 2", "violated 1")


def test_a_delayed_task_that_was_not_seen_queued_proves_nothing() -> None:
    tasks = [submit(T, priority=7, delay_ms=100), submit(U, priority=2), ALONE,
             ran(1100, 1110, U), ran(1120, 1130, T)]
    assert says(check, tasks) == {}
    assert told_again(tasks, look(T, "queued", at=900)) == "violated 1"


# Many histories ---------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(20))
def test_a_strict_queue_is_never_accused_and_two_swapped_tasks_always_are(seed: int) -> None:
    draw = random.Random(seed)
    levels = {task(number): draw.randrange(10) for number in range(40)}
    ordered = sorted(levels, key=lambda task_id: -levels[task_id])
    asked = [submit(task_id, at=number, priority=level)
             for number, (task_id, level) in enumerate(levels.items(), start=1)]

    def carried_out(order: list[str]) -> list[Any]:
        return [ran(1100 + 20 * place, 1100 + 20 * place + draw.randrange(1, 20), task_id)
                for place, task_id in enumerate(order)]

    assert told(asked, ALONE, carried_out(ordered)).startswith("holds")
    one, other = draw.sample(range(40), 2)
    swapped = list(ordered)
    swapped[one], swapped[other] = ordered[other], ordered[one]
    verdict = check(history(asked, ALONE, carried_out(swapped)))[0]
    assert (verdict.status == "violated") == (levels[ordered[one]] != levels[ordered[other]])

"""one_way_leads_to_each_unfinished_task: what any snapshot of the key space shows."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_conformance.checkers.one_way_leads_to_each_unfinished_task import PROMISES, check
from dtq_conformance.snapshot import Alike, Depth, Hands, Snapshot

from tests.conformance.histories import T, U, accuses, born, fault, history, ns, says


def alike(status: str, *task_ids: str, **fields: Any) -> Alike:
    ids = list(task_ids) or [T]
    return Alike(**{"status": status, "count": len(ids), "task_ids": ids} | fields)


def snapshot(*seen: Alike, at: int = 500, **fields: Any) -> Snapshot:
    return Snapshot(at_ns=ns(at), asked_ns=ns(at) - 1000, alike=list(seen), **fields)


@pytest.mark.parametrize("good", [
    alike("queued", entries=1), alike("running", entries=1), alike("pending", members=1),
    alike("retrying", members=1), alike("running", T, U, entries=1, record="processing"),
    alike("retrying", members=1, record="processing")])
def test_one_way_leads_to_an_unfinished_task(good: Alike) -> None:
    assert says(check, snapshot(good)) == {"DLV-12": f"holds {good.count}"}


@pytest.mark.parametrize("good", [
    alike("succeeded", has_result=True), alike("succeeded", has_result=True, record="completed"),
    alike("failed"), alike("cancelled", record="failed"), alike("expired"),
    alike("dead_lettered", letters=1), alike("dead_lettered", letters=1, record="failed"),
    alike("dead_lettered", expires=True)])
def test_nothing_leads_to_a_finished_task_and_its_outcome_is_whole(good: Alike) -> None:
    assert says(check, snapshot(good)) == {"DLV-12": "holds 1", "DLV-13": "holds 1"}


@pytest.mark.parametrize(("bad", "words"), [
    (alike("queued"), f"Task {T} was 'queued' at 500 ms: 0 entries and 0 members of the schedule "
                      "led to it; one entry leads to a task that is queued."),
    (alike("running", entries=2), "2 entries and 0 members of the schedule led to it; one entry"),
    (alike("queued", entries=1, members=1), "1 entry and 1 member of the schedule led to it"),
    (alike("queued", entries=0, strays=1), "0 entries, 1 more in streams that are not its own,"),
    (alike("retrying"), "one member of the schedule leads to a task that is retrying"),
    (alike("retrying", entries=1, members=1), "1 entry and 1 member of the schedule led to it"),
    (alike("succeeded", entries=1, has_result=True), "nothing leads to a task that is succeeded"),
    (alike("cancelled", members=1), "nothing leads to a task that is cancelled"),
    (alike("absent", entries=1), f"Task {T} was without a record at 500 ms: 1 entry"),
    (alike("absent", members=1), "nothing leads to a task without a record"),
    (alike("", entries=1), f"Task {T} was None at 500 ms"),
    (alike("lost", T, U), "and so were 1 more: 0 entries and 0 members")])
def test_none_or_two_ways_to_a_task_are_a_violation(bad: Alike, words: str) -> None:
    assert says(check, snapshot(bad))["DLV-12"] == f"violated {bad.count}"
    assert words in accuses(check, "DLV-12", snapshot(bad))


@pytest.mark.parametrize(("bad", "words"), [
    (alike("succeeded"), "it had no result"),
    (alike("dead_lettered"), "it had no dead letter."),
    (alike("dead_lettered", letters=2, expires=True), "it had 2 dead letters"),
    (alike("running", entries=1, letters=1), "it had a dead letter"),
    (alike("succeeded", has_result=True, record="processing"),
     "its idempotency record said processing, not completed"),
    (alike("retrying", members=1, record="failed"), "said failed, not processing"),
    (alike("dead_lettered", letters=1, record="completed,failed"), "said completed,failed")])
def test_half_an_outcome_is_a_violation(bad: Alike, words: str) -> None:
    assert says(check, snapshot(bad))["DLV-13"].startswith("violated")
    assert words in accuses(check, "DLV-13", snapshot(bad))


@pytest.mark.parametrize(("depth", "verdict"), [
    (Depth(queue="q", members=3, said=3), "holds 1"),
    (Depth(queue="q", members=3, said=2), "violated 1"),
    (Depth(queue="q", members=3, said=None), "violated 1"),
    (Depth(queue="q", members=0, said=0), "violated 1"),
    (Depth(queue="q", members=0, said=-1), "violated 1")])
def test_the_depth_of_the_schedule_is_told_rightly(depth: Depth, verdict: str) -> None:
    assert says(check, snapshot(depths=[depth])) == {"KEY-06": verdict}


def test_a_wrong_depth_is_told_with_both_numbers() -> None:
    wrong = snapshot(depths=[Depth(queue="q", members=3, said=None)])
    assert accuses(check, "KEY-06", wrong) == (
        "The schedule had 3 members of the queue q at 500 ms, and retry:depth said nothing.")


def hands(pending: int, *, consumer: str = "worker-1.0123abcd", concurrency: int = 4) -> Snapshot:
    return snapshot(hands=[Hands(consumer=consumer, pending=pending, concurrency=concurrency)])


def test_no_process_has_more_in_hand_than_it_was_started_with() -> None:
    assert says(check, born(1, concurrency=2), hands(2, concurrency=0)) == {"KEY-07": "holds 1"}
    full = hands(3, concurrency=2)
    assert says(check, born(1, concurrency=2), full) == {"KEY-07": "violated 1"}
    assert "3 entries were pending under worker-1.0123abcd at 500 ms; worker-1 executes 2" in \
        accuses(check, "KEY-07", born(1, concurrency=2), full)


def test_of_two_processes_of_one_id_the_larger_concurrency_counts() -> None:
    assert says(check, born(1, concurrency=2), hands(3)) == {"KEY-07": "holds 1"}


def test_of_a_worker_that_the_lab_does_not_know_its_own_hash_counts() -> None:
    assert says(check, hands(5)) == {"KEY-07": "violated 1"}
    assert says(check, hands(5, concurrency=0)) == {}


def test_a_consumer_that_is_no_process_has_no_hands() -> None:
    assert says(check, hands(9, consumer="released")) == {}


def test_what_stays_wrong_is_told_once() -> None:
    verdicts = check_of([snapshot(alike("queued"), at=at) for at in (500, 800, 1100)])
    assert [len(each.findings) for each in verdicts if each.clause == "DLV-12"] == [1]


def check_of(snapshots: list[Snapshot]) -> Any:
    return check(history(*snapshots))


def test_a_task_that_the_harness_harmed_is_left_out() -> None:
    harmed = fault("deleted", 400, 400, task_id=T)
    several = fault("deleted", 400, 400, task_ids=[T, U])
    assert says(check, harmed, snapshot(alike("queued"))) == {}
    assert says(check, several, snapshot(alike("absent", T, U, entries=1))) == {}
    assert says(check, harmed, snapshot(alike("queued", T, U))) == {"DLV-12": "violated 2"}


def test_without_a_snapshot_nothing_is_known_and_the_reason_is_told() -> None:
    none = snapshot(not_taken="it is not ours")
    assert says(check, none) == dict.fromkeys(PROMISES, "unknown 0")
    assert "it is not ours" in accuses(check, "KEY-07", none)
    assert says(check) == {}

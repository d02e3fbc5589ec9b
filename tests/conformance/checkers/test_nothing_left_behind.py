"""nothing_left_behind: at rest, the key table explains every key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from dtq_conformance.checkers.nothing_left_behind import check
from dtq_conformance.key_table import RULES, KeyGroup, KeysAtRest

from tests.conformance.histories import (
    LATE,
    T,
    U,
    absent,
    accuses,
    born,
    dead,
    look,
    ns,
    ran,
    says,
    submit,
)

LEVEL, LETTERS, TASK = "stream:<queue>:p<level>", "stream:dead-letter", "task:<task_id>"


def group(row: str, count: int = 1, **fields: Any) -> KeyGroup:
    """Keys as they should be, but for what `fields` say."""
    given: dict[str, Any] = {"row": row, "type": RULES[row].type if row else "hash",
                             "expires": bool(row) and RULES[row].expires != "never",
                             "count": count, "members": 0, "names": [f"{row or 'odd'} 1"]}
    return msgspec.convert(given | fields, KeyGroup)


def keys(*groups: KeyGroup, at: int = LATE + 20) -> KeysAtRest:
    return KeysAtRest(at_ns=ns(at), groups=list(groups))


DONE = [submit(), born(1), ran(20, 30), look()]


@pytest.mark.parametrize(("kept", "clause"), [
    (group("queues", members=1), "KEY-01"), (group(LETTERS, members=3), "KEY-01"),
    (group("workers", members=2), "KEY-01"), (group("stream:audit", members=9), "KEY-01"),
    (group("queue:<queue>:paused", members=1), "KEY-01"),
    (group(LEVEL, 10), "KEY-02"), (group(TASK, 2000, state="succeeded"), "KEY-04"),
    (group(TASK, state="dead_lettered", expires=False, has_letter=True), "KEY-04"),
    (group(TASK, state="dead_lettered"), "KEY-04"), (group("result:<task_id>"), "KEY-05"),
    (group("worker:<worker_id>"), "KEY-05"), (group("lock:scheduler"), "KEY-05"),
    (group("once:<key>"), "KEY-05"), (group("tasks:recent", members=10_000), "KEY-05"),
    (group("idempotency:<queue>:<key>", state="completed"), "KEY-05")])
def test_what_the_table_explains_holds(kept: KeyGroup, clause: str) -> None:
    assert says(check, DONE, keys(kept)) == {
        "KEY-01": f"holds {kept.count}", clause: f"holds {kept.count}"}


@pytest.mark.parametrize(("left", "clause", "words"), [
    (group(""), "KEY-01", "The key odd 1 is in no row of the key table."),
    (group("", 3), "KEY-01", "The key odd 1 and 2 more keys are in no row of the key table."),
    (group("queues", type="list"), "KEY-01", "of type list; the key table says set"),
    (group(LEVEL, members=1, task_ids=[T]), "KEY-02", "1 entry is left (0 pending) in"),
    (group(LEVEL, 2, members=7, pending=3, task_ids=[T, U]), "KEY-02",
     f"7 entries are left (3 pending) in {LEVEL} 1 and 1 more streams, of task {T}, {U}."),
    (group(LEVEL, pending=1), "KEY-02", "0 entries are left (1 pending)"),
    (group("retry:schedule", members=2, task_ids=[T]), "KEY-03", f"2 members, of task {T}"),
    (group("retry:depth", members=1), "KEY-03", "retry:depth 1 still has 1 members"),
    (group(TASK, state="succeeded", expires=False, task_ids=[T]), "KEY-04",
     "never expires, although the task is succeeded"),
    (group(TASK, 4, state="cancelled", expires=False), "KEY-04", "and 3 more like it"),
    (group(TASK, state="dead_lettered", expires=False), "KEY-04", "never expires"),
    (group(TASK, state="dead_lettered", has_letter=True), "KEY-04",
     "expires, although its dead letter exists"),
    (group(TASK, state="queued", expires=False), "KEY-04", "says 'queued'"),
    (group("result:<task_id>", expires=False), "KEY-05", "without an expiry"),
    (group("worker:<worker_id>", expires=False), "KEY-05", "without an expiry"),
    (group("tasks:recent", members=10_001), "KEY-05", "has 10001 members"),
    (group("idempotency:<queue>:<key>", state="processing", expires=False), "KEY-05",
     "still processing")])
def test_what_the_table_does_not_explain_is_a_violation(left: KeyGroup, clause: str,
                                                        words: str) -> None:
    assert says(check, DONE, keys(left))[clause].startswith("violated")
    assert words in accuses(check, clause, DONE, keys(left))


def test_the_schedule_is_judged_by_the_tasks_that_were_in_it() -> None:
    retried = [submit(U), ran(20, 30, U, "failed"), ran(200, 210, U, attempt=2), look(U)]
    delayed = [submit(delay_ms=100), ran(200, 210), look()]
    assert says(check, DONE, keys()) == {}
    assert says(check, born(1), retried, delayed, keys()) == {"KEY-03": "holds 2"}


@pytest.mark.parametrize("unfinished", [
    look(U, "running"), look(U, "retrying"), absent(U), []])
def test_while_a_task_may_be_unfinished_nothing_can_be_told(unfinished: Any) -> None:
    verdicts = says(check, DONE, submit(U), unfinished, keys(group(LEVEL, members=1)))
    assert set(verdicts.values()) == {"unknown 0"}
    assert f"Task {U} was not seen to be over" in accuses(
        check, "KEY-02", DONE, submit(U), unfinished, keys())


def test_a_task_that_was_never_accepted_need_not_be_known() -> None:
    for outcome in ("refused", "unknown"):
        assert says(check, DONE, submit(U, outcome=outcome), absent(U), keys(group(LEVEL))) == {
            "KEY-01": "holds 1", "KEY-02": "holds 1"}


def test_dead_letters_are_over_too() -> None:
    assert says(check, submit(), born(1), ran(20, 30, T, "failed"), dead(), keys(group(LEVEL)))[
        "KEY-02"] == "holds 1"


def test_without_a_look_at_the_keys_nothing_is_judged() -> None:
    assert says(check, DONE) == {}

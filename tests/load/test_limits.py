"""The limits: the bare commands do what a queue has to, and the bare calls wait for each other."""

from __future__ import annotations

import sys

import pytest
from dtq_load.bench import limits
from dtq_load.bench.peers import dtq
from dtq_load.bench.reference_loop import GROUP, RESULT, STREAM, TASK
from dtq_load.bench.stand import BenchError, Stand

pytestmark = pytest.mark.slow

TASKS = 2 * limits.BATCH + 1
"""The last batch is a small one."""


def test_the_bare_commands_take_settle_and_forget_each_task(stand: Stand) -> None:
    assert limits.commands_us(stand, tasks=TASKS) > 0
    for number in (0, TASKS - 1):
        assert stand.redis.hget(f"{TASK}{number}", "status") == b"succeeded"
        assert stand.redis.get(f"{RESULT}{number}") == b"null"
    assert stand.redis.xpending(STREAM, GROUP)["pending"] == 0


def test_commands_that_leave_tasks_behind_are_no_measure(
        stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SETTLE", "return 1")
    with pytest.raises(BenchError, match="left tasks behind"):
        limits.commands_us(stand, tasks=TASKS)


def test_each_bare_task_is_rung_for_taken_settled_and_looked_at(stand: Stand) -> None:
    assert limits.calls_ms(stand, calls=20) > 0
    assert [stand.redis.xlen(stream) for stream in ("bare:stream", "bare:done")] == [21, 21]


def test_calls_that_come_to_nothing_say_why(
        stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT", [*limits.CLIENT[:-1], "no_such_word"])
    with pytest.raises(BenchError, match="The bare calls came to nothing"):
        limits.calls_ms(stand, calls=1)


def test_the_straight_way_takes_and_settles_each_task_as_the_engine_does(stand: Stand) -> None:
    assert limits.own_commands_us(stand, tasks=TASKS) > 0
    assert dtq.kept(stand.redis) == TASKS
    task = stand.redis.hgetall(next(stand.redis.scan_iter("dtq:task:*")))
    assert {b"finished_at", b"holder", b"duration_ms"} <= task.keys()
    assert task[b"status"] == b"succeeded"
    assert stand.redis.xpending(dtq.STREAM, "workers")["pending"] == 0


@pytest.mark.parametrize(("command", "said"), [
    ([*limits.STRAIGHT, "no_such_word"], "came to nothing"),
    ([sys.executable, "-c", f"print('{{\"done\": {TASKS}}}')"], "left .* tasks behind")],
    ids=["refused", "did nothing"])
def test_a_straight_way_that_does_not_lead_to_the_end_is_no_measure(
        stand: Stand, monkeypatch: pytest.MonkeyPatch, command: list[str], said: str) -> None:
    monkeypatch.setattr(limits, "STRAIGHT", command)
    with pytest.raises(BenchError, match=said):
        limits.own_commands_us(stand, tasks=TASKS)


def test_a_worker_without_an_event_loop_finishes_each_task(stand: Stand) -> None:
    assert limits.own_calls_ms(stand, calls=20) > 0
    assert dtq.kept(stand.redis) == 21

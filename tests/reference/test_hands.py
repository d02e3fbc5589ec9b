"""What a worker process has in hand: how much room it has, what it says of itself, and hellos."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from dtq_reference.calls import Identity, Taken
from dtq_reference.hands import Hands, Hold
from dtq_reference.metrics import Metrics
from dtq_reference.settings import Settings

from tests.reference.engine import Engine


def hands_with(*, holds: int = 0, alone: bool = False, overdue: int = 0, is_beating: bool = True,
               is_draining: bool = False) -> Hands:
    """Hands of a worker of concurrency 3; with `alone`, its first task must run alone."""
    hands = Hands(Settings(worker_concurrency=3), Identity("w", "0"), "default")
    hands.is_beating = is_beating
    for number in range(holds):
        taken = Taken(level=1, entry_id=f"{number}-0", attempt=1, task_id="a" * 32, task_type="t",
                      payload=b"{}", max_attempts=5, timeout_ms=1, queue="default",
                      alone=alone and number == 0, created_at=0)
        hands.holds[taken.hold] = Hold(taken, 0)
    hands.overdue = {asyncio.Future() for _ in range(overdue)}
    if is_draining:
        hands.drain()
    return hands


@pytest.mark.parametrize(("state", "room", "status"), [
    ({}, 3, "ready"),
    ({"holds": 2}, 1, "busy"),
    ({"holds": 1, "alone": True}, 0, "busy"),
    ({"is_beating": False}, 0, "ready"),
    ({"holds": 1, "overdue": 1}, 1, "busy"),
    ({"overdue": 3}, 0, "overdue"),
    ({"overdue": 3, "is_draining": True}, 0, "draining"),
], ids=str)
def test_room_and_status_follow_from_what_is_in_hand(
        state: dict[str, Any], room: int, status: str) -> None:
    async def found() -> tuple[int, str]:
        hands = hands_with(**state)
        return hands.room, hands.status
    assert asyncio.run(found()) == (room, status)


def test_what_leaves_the_hands_and_a_drain_are_changes() -> None:
    async def use() -> None:
        hands = hands_with(holds=1)
        await hands.change(0.001)  # nothing has changed: the time is up
        (hold,) = hands.holds.values()
        hands.drop(hold)
        await hands.change()
        assert not hands.holds
        hands.changed.clear()
        hands.drain()
        await hands.change()
        assert hands.draining.is_set()
    asyncio.run(use())


def test_of_two_processes_of_one_name_the_one_that_is_named_no_more_drains(engine: Engine) -> None:
    async def use() -> list[bool]:
        older, newer = (Hands(engine.settings, Identity("same", f"0000000{number}"), "default")
                        for number in (1, 2))
        await older.register(again=False)
        await newer.register(again=False)
        for hands in (newer, older):
            await hands.register(again=True)
        return [older.draining.is_set(), newer.draining.is_set()]
    assert asyncio.run(use()) == [True, False]
    assert engine.redis.hget(engine.keys.worker_prefix + "same", "incarnation") == b"00000002"


def test_what_a_script_ended_is_counted() -> None:
    hands = hands_with()
    hands.metrics = Metrics()
    hands.count([[b"mail", "tü".encode(), b"expired"]] * 2 + [[b"", b"\xff", b"expired"]])
    assert 'dtq_tasks_completed_total{queue="mail",status="expired",task_type="tü"} 2.0' in \
        hands.metrics.text({}).decode().splitlines()

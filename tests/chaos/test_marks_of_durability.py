"""Each mark of the broker's own ends, held and not held, on small histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from dtq_chaos import marks_of_durability as marks
from dtq_conformance.history import Record

from tests.chaos.test_marks_of_delivery import bite
from tests.conformance.histories import T, U, V, dead, history, look

ENDS = [look(at=300), dead(U, at=300), look(V, "cancelled", at=300)]


def power(**detail: Any) -> list[Record]:
    return bite("cut_power", 500, 2000, **{
        "kept": 100, "cut": 150, "end": 200, "lasted_ms": 1010, **detail})


def restart(at: int = 500, **detail: Any) -> list[Record]:
    return bite("restart_broker", at, at + 100, **{"in_hand": {"worker-1": [T]}, **detail})


def test_the_power_failed_where_bytes_of_the_last_second_alone_are_gone() -> None:
    read = marks.power_failed()
    assert read(history(power())).held
    assert read(history(power())).sentence == (
        "The broker's file lost 50 of the 100 bytes of its last 1010 ms.")
    for wrong in ({"cut": 90}, {"cut": 200}, {"lasted_ms": 900}):
        assert not read(history(power(**wrong))).held
    assert not read(history()).held


@pytest.mark.parametrize(("story", "held"), [
    ([ENDS, restart()], True), ([ENDS[:2], restart()], False), ([ENDS], False),
    ([ENDS, restart(in_hand={"worker-1": []})], False), ([ENDS, restart(at=200)], False)])
def test_it_was_restarted_with_work_in_hand_after_ends_of_every_sort(
        story: Sequence[Any], held: bool) -> None:
    assert marks.restarted_after_answers(times=1)(history(*story)).held == held

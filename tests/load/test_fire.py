"""The mark of the kill, read from records."""

from __future__ import annotations

import pytest
from dtq_conformance.history import Fault, History
from dtq_load.fire import FAULT, hands_full_at_the_kill

from tests.conformance.histories import header


def history_with(*faults: Fault) -> History:
    return History(header(), tuple(faults))


def bit(in_hand: int) -> Fault:
    return Fault(at_ns=1, fault=FAULT, number=0, phase="bit", effect="killed", pids=[1],
                 detail={"in_hand": ["a" * 32] * in_hand, "concurrency": 8, "worker": "worker-1"})


def test_hands_are_full_at_the_workers_concurrency() -> None:
    mark = hands_full_at_the_kill(history_with(bit(8)))
    assert mark.held
    assert mark.sentence == "worker-1 was killed with 8 tasks in hand, at a concurrency of 8."


@pytest.mark.parametrize("in_hand", [0, 7])
def test_hands_with_fewer_tasks_are_no_mark(in_hand: int) -> None:
    assert not hands_full_at_the_kill(history_with(bit(in_hand))).held


def test_without_a_kill_there_is_no_mark() -> None:
    assert not hands_full_at_the_kill(history_with()).held

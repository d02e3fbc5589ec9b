"""Which queues are filled once, and which before each take."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_load.bench import measures
from dtq_load.bench.drain import Drained
from dtq_load.bench.peers import PEERS


class FakeStand:
    """Notes what it is filled with."""

    def __init__(self) -> None:
        self.filled: list[int] = []

    def fill(self, _: object, tasks: int) -> None:
        self.filled.append(tasks)


def drained(**asked: Any) -> Drained:
    return Drained(per_s=1.0, cost_us=float(asked["submitted"]), worker_cpu_s_per_10k=0,
                   server_cpu_s_per_10k=0, commands_per_task=0, round_trips_per_task=0, rss_mb=0,
                   rss_leader_mb=0, by_command={})


@pytest.mark.parametrize(("depth", "filled"), [(500, [700] * 3), (10_000, [10_600])])
def test_a_shallow_queue_is_filled_for_each_take_and_a_deep_one_once(
        depth: int, filled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    stand: Any = FakeStand()
    monkeypatch.setattr(measures, "drain", lambda _stand, _peer, **asked: drained(**asked))
    found = measures.cost_at_depth(stand, PEERS["dtq"], depth=depth, take=100, times=3)
    assert stand.filled == filled
    assert found == [{f"cost_us_at_{depth}": float(filled[0])}] * 3

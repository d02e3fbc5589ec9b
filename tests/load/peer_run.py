"""A peer of the benchmark, run for real on a server of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_load.bench import recovery
from dtq_load.bench.peer import Peer, Size
from dtq_load.bench.stand import Stand

LIMIT_S = 60.0
TASKS = 40
LONG_MS = 60_000


@contextlib.contextmanager
def stand_in(folder: Path) -> Iterator[Stand]:
    with Lab(folder, broker="embedded") as lab:
        yield Stand(lab)


def works(stand: Stand, peer: Peer) -> None:
    """It submits in both ways, drains what it submitted, keeps the results, waits for one."""
    stand.clear()
    stand.ask(peer, "submit", str(TASKS))
    assert peer.left(stand.redis, TASKS) == TASKS
    stand.fill(peer, TASKS)
    assert peer.kept(stand.redis) == 0
    with stand.working(peer, peer.size):
        wait_for(lambda: peer.left(stand.redis, TASKS) == 0, reason="the drain", limit_s=LIMIT_S)
        assert peer.kept(stand.redis) == TASKS
    with stand.working(peer, peer.size, purpose="latency"):
        assert len(stand.ask(peer, "latency", "2", purpose="latency")["ms"]) == 2


def counts_what_it_held(stand: Stand, peer: Peer, size: Size) -> None:
    """Of a worker killed with its hands full, no task counts as finished."""
    stand.clear()
    tasks = 2 * size.processes * size.slots
    stand.ask(peer, "hold", str(tasks), str(LONG_MS))
    with stand.working(peer, size) as (worker,):
        def is_full() -> bool:
            lines = recovery.read(stand.lab.witness)
            return len(recovery.in_hand(lines, set(worker.pids()))) == size.processes * size.slots

        wait_for(is_full, reason="full hands", limit_s=LIMIT_S)
        assert peer.left(stand.redis, tasks) == tasks
    assert peer.left(stand.redis, tasks) == tasks
    assert peer.kept(stand.redis) == 0

"""How fast workers drain a queue that was filled before, and what that costs.

Comes in: a stand and a peer. Goes out: the figures between 10 % and 90 % of the tasks finished, so
that the start of a process counts for nobody. What is left is asked from outside, every 20 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from dtq_conformance.lab import LabProcess
from dtq_conformance.waiting import wait_for

from dtq_load.bench.peer import Peer, Size
from dtq_load.bench.stand import (
    ASKING,
    BenchError,
    Counts,
    Stand,
    cpu_s,
    look_at,
    now_s,
    require_alive,
)

LOOK_EVERY_S = 0.02
FROM, TO = 0.1, 0.9
STILL_LIMIT_S = 60.0
"""A peer that finishes nothing for so long is broken."""


@dataclass(frozen=True)
class Mark:
    """A moment of a drain: so many tasks have finished, after so many looks."""

    at_s: float
    done: int
    looks: int
    counts: Counts
    cpu_s: float


class Command(msgspec.Struct, frozen=True):
    """What one command of the server does for a task: so many calls, so many microseconds; of a
    script these are with all that it calls."""

    calls_per_task: float
    us_per_task: float


@dataclass(frozen=True)
class Drained:
    """What happened between two marks, per task or second."""

    per_s: float
    cost_us: float
    worker_cpu_s_per_10k: float
    server_cpu_s_per_10k: float
    commands_per_task: float
    round_trips_per_task: float
    rss_mb: float
    rss_leader_mb: float
    by_command: dict[str, Command]


class Watch:
    """Watches a drain from outside."""

    def __init__(self, stand: Stand, peer: Peer, workers: list[LabProcess], submitted: int) -> None:
        self._stand, self._peer, self._workers = stand, peer, workers
        self._submitted = submitted
        self._looks = self._done = 0
        self._moved_s = now_s()

    def mark(self, wanted: int) -> Mark:
        """Wait until so many tasks have finished, and take down everything at that moment."""
        at_s = wait_for(lambda: self._look(wanted), every_s=LOOK_EVERY_S, limit_s=3600,
                        reason=f"{self._peer.name} to finish {wanted:,} tasks")
        spent_s = cpu_s(self._workers)
        return Mark(at_s, self._done, self._looks, self._stand.counts(), spent_s)

    def _look(self, wanted: int) -> float | None:
        """The time of this look if enough have finished."""
        done = self._submitted - self._peer.left(self._stand.redis, self._submitted)
        at_s = now_s()
        self._looks += 1
        if done > self._done:
            self._done, self._moved_s = done, at_s
        elif at_s - self._moved_s > STILL_LIMIT_S:
            require_alive(self._workers)
            raise BenchError(f"{self._peer.name}: {self._done:,} of {self._submitted:,} tasks have "
                             f"finished, and none more within {STILL_LIMIT_S:g} s; see "
                             f"{self._workers[0].log}.")
        return at_s if done >= wanted else None


def drain(stand: Stand, peer: Peer, *, size: Size, workers: int, submitted: int,
          take: int) -> Drained:
    """Let workers take so many of the tasks that wait. Where that is all of them, each has to have
    its result in the end. Raises `BenchError`."""
    look = stand.cost_of_a_look(peer, submitted)
    already = submitted - peer.left(stand.redis, submitted)
    with stand.working(peer, size, workers) as running:
        watch = Watch(stand, peer, running, submitted)
        begin = watch.mark(already + max(1, round(take * FROM)))
        end = watch.mark(already + round(take * TO))
        processes = look_at(running[0])
        if take == submitted:
            watch.mark(take)
    if take == submitted and (kept := peer.kept(stand.redis)) != submitted:
        raise BenchError(f"{peer.name}: {submitted:,} tasks have finished, of which {kept:,} have "
                         "their result.")
    if end.done <= begin.done:
        raise BenchError(f"{peer.name}: {take:,} tasks are too few: they finished at once. Ask for "
                         "more with --tasks.")
    rss = [process.rss_mb for process in processes]
    return drained(begin, end, look, rss_mb=sum(rss), rss_leader_mb=rss[0])


def drained(begin: Mark, end: Mark, look: Counts, *, rss_mb: float,
            rss_leader_mb: float) -> Drained:
    """The figures of what lies between two marks, less what the looks themselves cost."""
    tasks, seconds = end.done - begin.done, end.at_s - begin.at_s
    spent = end.counts.since(begin.counts).without(ASKING, 1).without(look, end.looks - begin.looks)
    return Drained(
        per_s=tasks / seconds, cost_us=1e6 * seconds / tasks,
        worker_cpu_s_per_10k=(end.cpu_s - begin.cpu_s) / tasks * 10_000,
        server_cpu_s_per_10k=spent.cpu_s / tasks * 10_000,
        commands_per_task=spent.commands / tasks, round_trips_per_task=spent.round_trips / tasks,
        rss_mb=rss_mb, rss_leader_mb=rss_leader_mb,
        by_command={name: Command(round(calls / tasks, 4),
                                  round(spent.us.get(name, 0) / tasks, 2))
                    for name, calls in sorted(spent.calls.items()) if calls / tasks >= 0.001})

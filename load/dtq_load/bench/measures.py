"""The measures of the benchmark that are a few lines each; each gives figures by name.

Comes in: a stand and a peer. Goes out: one value for each figure, of one round. `drain.py`,
`counting.py` and `recovery.py` hold what is longer.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtq_load.bench.drain import Drained, drain
from dtq_load.bench.figures import depth_figure, quantile
from dtq_load.bench.peer import Peer
from dtq_load.bench.stand import BenchError, Stand, require_alive

Values = dict[str, float]

DEEP_TAKES = 2
"""A queue is deep if it holds so many times what will be taken from it in all."""


def drains(stand: Stand, peer: Peer, *, tasks: int) -> tuple[Values, Drained]:
    """The same tasks drained by one worker, whose costs count, and by two."""
    by = {}
    for workers in (1, 2):
        stand.fill(peer, tasks)
        by[workers] = drain(stand, peer, size=peer.size, workers=workers, submitted=tasks,
                            take=tasks)
    one = by[1]
    return {"one_worker_per_s": one.per_s, "two_workers_per_s": by[2].per_s,
            "commands_per_task": one.commands_per_task,
            "round_trips_per_task": one.round_trips_per_task,
            "worker_cpu_s_per_10k": one.worker_cpu_s_per_10k,
            "server_cpu_s_per_10k": one.server_cpu_s_per_10k,
            "rss_mb": one.rss_mb, "rss_leader_mb": one.rss_leader_mb}, one


def submissions(stand: Stand, peer: Peer, *, tasks: int) -> Values:
    """Submissions with no worker about: one by one a fifth of the tasks, in bulk all."""
    found = {}
    for name, count, more in (("submit_per_s", max(1, tasks // 5), []),
                              ("submit_bulk_per_s", tasks, ["--bulk"])):
        stand.clear()
        found[name] = count / stand.ask(peer, "submit", str(count), *more)["seconds"]
        if (left := peer.left(stand.redis, count)) != count:
            raise BenchError(f"{peer.name}: of {count:,} submitted tasks {left:,} wait.")
    return found


def latency(stand: Stand, peer: Peer, *, tasks: int) -> Values:
    """Submit to result, one task at a time, while one worker is idle."""
    stand.clear()
    with stand.working(peer, peer.size, purpose="latency") as workers:
        try:
            found: Sequence[float] = stand.ask(peer, "latency", str(tasks),
                                               purpose="latency")["ms"]
        except BenchError:
            require_alive(workers)  # the better reason
            raise
    return {f"idle_p{percent}_ms": quantile(found, percent / 100) for percent in (50, 95, 99)}


def cost_at_depth(stand: Stand, peer: Peer, *, depth: int, take: int, times: int) -> list[Values]:
    """What a task costs one worker while at least `depth` others wait, several times.

    What will be taken is queued on top, so that all depths are measured over the same number of
    tasks. A deep queue is filled once, since what was taken before hardly changes its depth.
    """
    once = depth >= DEEP_TAKES * take * times
    found = []
    for number in range(times):
        submitted = depth + 2 * take * (times if once else 1)
        if number == 0 or not once:
            stand.fill(peer, submitted)
        one = drain(stand, peer, size=peer.size, workers=1, submitted=submitted, take=take)
        found.append({depth_figure(depth): one.cost_us})
    return found

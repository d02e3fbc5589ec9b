"""The scheduler's leader is killed while retries and delayed tasks are about to fall due.

Its lock outlives it by up to ten seconds, and until then nobody else promotes: the contract allows
a due task to be late by that much more, and the trial's recovery time is longer by as much.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from dtq_conformance.bench import Bench

from dtq_chaos.fault import Stage
from dtq_chaos.marks import leader_killed
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

LOCK_MS = 10_000
RETRY_MS = 2_000
FLAKY, CONCURRENCY = 6, 16


def _plan(draw: random.Random) -> list[Entry]:
    del draw  # killed when the flaky tasks have failed and none of their retries can be due yet
    return [Entry(fault="kill_leader", when=When(event="end", label="flaky", count=FLAKY))]


def _set_up(stage: Stage) -> None:
    """Both workers fill their hands first: who has worked is known to have been there when what
    the leader leaves behind falls due."""
    bench = stage.bench
    with stage.standing_by(2, CONCURRENCY):
        bench.submit_many(2 * CONCURRENCY, {"sleep": 200}, label="first")
    stage.await_quietly(lambda: len(bench.witnessed("end", "first")) >= 2 * CONCURRENCY,
                        reason="both workers to have worked")
    for delay_ms in range(2_000, 3_200, 200):
        bench.submit({"sleep": 20}, label="delayed", delay_ms=delay_ms)
    _let_both_fail(stage)


def _let_both_fail(stage: Stage) -> None:
    """Each worker takes half of the flaky tasks while the other stands still, with nothing in hand:
    one of them is the leader, and what that has in its hands says nothing of retries when it is
    dead."""
    bench = stage.bench

    def taken() -> int:
        return len(bench.witnessed("start", "flaky"))

    for resting in bench.workers[:2]:
        before = taken()
        stage.await_quietly(partial(_is_empty_handed, bench, resting.name),
                            reason=f"{resting.name} to have recorded what it took")
        resting.process.stop()
        bench.submit_many(FLAKY // 2, {"sleep": 50}, {"fail": "retryable", "until_attempt": 1},
                          label="flaky")
        stage.await_quietly(partial(_has_grown, taken, before + FLAKY // 2),
                            reason="the other worker to take the flaky tasks")
        resting.process.resume()


def _is_empty_handed(bench: Bench, worker: str) -> bool:
    return not bench.keyspace.in_hand(worker)


def _has_grown(count: Callable[[], int], wanted: int) -> bool:
    return count() >= wanted


SCENARIO = Scenario(
    "scheduler_leader_killed",
    "The scheduler's leader is killed while retries and delayed tasks are about to fall due.",
    ("DLV-01", "DLV-02", "DLV-12", "DLV-13", "RETRY-01", "RETRY-02", "RETRY-03", "RETRY-05",
     "SCHED-01", "SCHED-02", "KEY-06"),
    _plan, _set_up, (leader_killed(),), recovery_more_ms=LOCK_MS,
    base_delay_ms=RETRY_MS, max_delay_ms=RETRY_MS, needs=("redis-schema",))

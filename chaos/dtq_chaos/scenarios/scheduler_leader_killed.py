"""The scheduler's leader is killed while retries and delayed tasks are about to fall due.

Its lock outlives it by up to ten seconds, and until then nobody else promotes: the contract allows
a due task to be late by that much more, and the trial's recovery time is longer by as much.
"""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks import leader_killed
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

LOCK_MS = 10_000
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
    bench.submit_many(FLAKY, {"sleep": 50}, {"fail": "retryable", "until_attempt": 1},
                      label="flaky")


SCENARIO = Scenario(
    "scheduler_leader_killed",
    "The scheduler's leader is killed while retries and delayed tasks are about to fall due.",
    ("DLV-01", "DLV-02", "RETRY-01", "RETRY-02", "RETRY-03", "RETRY-05", "SCHED-01", "SCHED-02"),
    _plan, _set_up, (leader_killed(),), recovery_more_ms=LOCK_MS, needs=("redis-schema",))

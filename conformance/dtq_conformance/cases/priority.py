"""Cases of priority: one worker of concurrency 1 empties a queue that was filled before."""

from __future__ import annotations

import contextlib
import time

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

HELD_LEVEL = 4


def _higher_levels_come_first(bench: Bench) -> None:
    for _ in range(60):
        bench.submit({"sleep": 2}, priority=bench.random.randrange(10))
    bench.start_worker(1)


def _the_oldest_of_a_level_comes_first(bench: Bench) -> None:
    """One submission is answered before the next is asked for, so that their order is known."""
    for _ in range(60):
        bench.submit({"sleep": 2}, priority=bench.random.choice((2, 5, 7)))
    bench.start_worker(1)


def _redelivered_work_keeps_its_place(bench: Bench) -> None:
    first = bench.start_worker(1)
    bench.submit({"sleep": 60_000, "until_attempt": 1}, priority=HELD_LEVEL, label="held")
    bench.await_witness("start", label="held")
    others = [level for level in range(10) if level != HELD_LEVEL]
    for _ in range(120):
        bench.submit(priority=bench.random.choice(others))
    first.process.kill()
    first.process.wait(10)
    server = bench.lab.broker.process
    young_until_ns = server.start_ns + 1_000_000_000 if server else 0  # in whole seconds
    counts_ns = (max(time.monotonic_ns(), young_until_ns)
                 + (bench.timing.lease_ms + bench.timing.reap_ms) * 1_000_000)
    wait_for(lambda: time.monotonic_ns() > counts_ns, limit_s=10,
             reason="the ended lease to count as waiting")
    bench.start_worker(1)


def _scheduled_work_keeps_its_place(bench: Bench) -> None:
    bench.start_worker(1)
    with contextlib.suppress(WaitedTooLong):  # then there is less to judge, and all to be found
        _fill_the_schedule(bench)


def _fill_the_schedule(bench: Bench) -> None:
    scheduled = [bench.submit({"fail": "retryable", "until_attempt": 1}, priority=level)
                 for level in range(10)]
    bench.await_witness("end", count=len(scheduled))
    bench.submit({"sleep": 1_500}, priority=9, label="holds the worker")
    bench.await_witness("start", label="holds the worker")
    scheduled += [bench.submit(priority=level, delay_ms=300) for level in range(10)]
    bench.submit_many(5, priority=3)

    def are_promoted() -> bool:
        views = [bench.look(task_id, always=False) for task_id in scheduled]
        return all(view and view.status not in ("retrying", "pending") for view in views)

    wait_for(are_promoted, limit_s=20, every_s=0.02, reason="all of the schedule to be promoted")


CASES = (
    Trial("conformance", "higher_levels_come_first",
          "Sixty tasks of all levels wait before the only worker starts.",
          ("PRIO-01", "DLV-01"), _higher_levels_come_first),
    Trial("conformance", "the_oldest_of_a_level_comes_first",
          "Sixty tasks of three levels, submitted one after the other, wait before the only worker "
          "starts.",
          ("PRIO-01", "PRIO-03", "DLV-01"), _the_oldest_of_a_level_comes_first),
    Trial("conformance", "redelivered_work_keeps_its_place",
          "A task of a middle level loses its holder; 120 tasks above and below it wait as well.",
          ("PRIO-02", "DLV-01", "DLV-03"), _redelivered_work_keeps_its_place,
          needs=("priority",)),
    Trial("conformance", "scheduled_work_keeps_its_place",
          "Retries and delayed tasks of all levels become due while the only worker is busy.",
          ("PRIO-02", "DLV-01", "RETRY-03"), _scheduled_work_keeps_its_place,
          base_delay_ms=400, needs=("schedule", "status")),
)

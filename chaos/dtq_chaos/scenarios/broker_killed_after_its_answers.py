"""The broker is killed twice when it has answered for ends of every sort, and comes back with its
data: whatever it said is still true."""

from __future__ import annotations

import random

from dtq_chaos.fault import Stage
from dtq_chaos.marks_of_durability import restarted_after_answers
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Entry, When

TIMES, AWAY_MS = 2, 100


def _plan(draw: random.Random) -> list[Entry]:
    """The first as soon as the last wave has begun, the second while it is under way."""
    return [Entry(fault="restart_broker", parameters={"away": AWAY_MS},
                  when=When(event="start", label="wave", count=draw.randint(1 + 6 * n, 6 + 6 * n)))
            for n in range(TIMES)]


def _set_up(stage: Stage) -> None:
    """Ends of every sort are seen, and a wave of work begins."""
    bench = stage.bench
    bench.start_workers(2, 2)
    bench.submit_many(3, {"sleep": 20}, label="good")
    bench.submit({"return": {"kept": True}})
    bench.submit({"fail": "permanent"}, label="bad")
    bench.submit({"fail": "retryable"}, max_attempts=2, label="spent")
    later = bench.submit(delay_ms=60_000)
    bench.cancel(later)
    bench.await_all_terminal()
    bench.ask_dead_letters()
    bench.submit_many(20, {"sleep": 100}, label="wave")
    bench.submit({"sleep": 20}, delay_ms=2_000, label="delayed")


def _afterwards(stage: Stage) -> None:
    stage.bench.submit_many(4, {"sleep": 20}, label="after")


SCENARIO = Scenario(
    "broker_killed_after_its_answers",
    "The broker is killed twice when it has answered for ends of every sort; all it said stays "
    "true.",
    ("DUR-02", "DUR-03", "DLV-01", "STATE-02", "DLQ-01", "DLQ-03"),
    _plan, _set_up, (restarted_after_answers(times=TIMES),), _afterwards, persistence="always",
    needs=("redis-schema", "status", "cancel", "durability:restart"))

"""What lies between two marks of a drain: rates, costs, and the looks that are left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dtq_load.bench.drain import Command, Mark, drained
from dtq_load.bench.stand import Counts

LOOK = Counts(1, 1, 1, 0.0, {"xlen": 1})


def mark(at_s: float, *, done: int, looks: int, counts: Counts, cpu_s: float) -> Mark:
    return Mark(at_s, done, looks, counts, cpu_s)


BEGIN = mark(10.0, done=1_000, looks=5, cpu_s=1.0,
             counts=Counts(100, 50, 60, 2.0, {"xlen": 50, "evalsha": 10}))
END = mark(12.0, done=9_000, looks=105, cpu_s=2.6,
           counts=Counts(100 + 16_000 + 101, 50 + 800 + 101, 60 + 900 + 101, 2.8,
                         {"xlen": 150, "evalsha": 810, "hset": 8_000, "info": 1},
                           {"xlen": 300, "evalsha": 160_000, "hset": 8_000}))


def test_the_rate_is_that_of_what_finished_between_the_marks() -> None:
    found = drained(BEGIN, END, LOOK, rss_mb=50, rss_leader_mb=37)
    assert found.per_s == 4_000
    assert found.cost_us == 250


def test_looks_from_outside_count_for_nobody() -> None:
    found = drained(BEGIN, END, LOOK, rss_mb=50, rss_leader_mb=37)
    assert found.commands_per_task == 2
    assert found.by_command == {"evalsha": Command(0.1, 20.0), "hset": Command(1.0, 1.0)}


def test_round_trips_are_the_fewer_of_read_and_write_events() -> None:
    assert drained(BEGIN, END, LOOK, rss_mb=0, rss_leader_mb=0).round_trips_per_task == 0.1
    pushed = replace(END, counts=replace(END.counts, writes=60 + 400 + 101))
    assert drained(BEGIN, pushed, LOOK, rss_mb=0, rss_leader_mb=0).round_trips_per_task == 0.05


def test_processor_time_is_per_ten_thousand_tasks() -> None:
    found = drained(BEGIN, END, LOOK, rss_mb=50, rss_leader_mb=37)
    assert found.worker_cpu_s_per_10k == pytest.approx(2.0)
    assert found.server_cpu_s_per_10k == pytest.approx(1.0)

"""retry_delays_in_envelope: no start is early, delays are spread, and what is due starts in time.

The target waits 100 ms after a first failure, doubles that up to 800 ms, and spreads it by a fifth.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from dtq_conformance.checkers.retry_delays_in_envelope import at_most, check, nominal_ms
from dtq_conformance.history import History
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.histories import (
    TIMING,
    T,
    accuses,
    born,
    fault,
    flat,
    header,
    killed,
    ran,
    says,
    stall,
    submit,
)


def failed(*ends: int, starts: list[int] | None = None) -> list[Any]:
    """Attempts of T that failed at these times, each ten milliseconds long."""
    return [ran((starts or [end - 10 for end in ends])[place], end, T, "failed", attempt=place + 1)
            for place, end in enumerate(ends)]


def told(*parts: Any) -> str:
    return says(check, submit(), *parts).get("RETRY-05", "")


# The lower edge ---------------------------------------------------------------------------------

def seeds(count: int) -> list[Any]:
    """Only the first is quick: each draws a history of hundreds of retries."""
    return [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, count))]


@pytest.mark.parametrize(("attempt", "nominal"), [(1, 100), (2, 200), (3, 400), (4, 800),
                                                  (5, 800), (2000, 800)])
def test_the_delay_doubles_up_to_its_limit(attempt: int, nominal: int) -> None:
    assert nominal_ms(TIMING, min(attempt, 1000)) == nominal


@pytest.mark.parametrize(("gap", "status"), [
    (80, "holds 1"), (78, "holds 1"), (77, "violated 1"), (0, "violated 1"), (5000, "holds 1")])
def test_a_retry_is_at_most_two_milliseconds_short_of_the_jittered_delay(gap: int,
                                                                         status: str) -> None:
    assert told(born(1), failed(100), ran(100 + gap, 110 + gap, attempt=2)) == status


def test_a_delay_that_does_not_grow_is_short_from_the_second_on() -> None:
    assert told(born(1), failed(100, 200), ran(300, 310, attempt=3)) == "violated 2"
    assert accuses(check, "RETRY-05", submit(), born(1), failed(100, 200),
                   ran(300, 310, attempt=3)) == (
        f"attempt 2 by worker-1 (pid 101) of task {T} failed at 200 ms and attempt 3 by worker-1 "
        "(pid 101) started at 300 ms, 100 ms later; the delay is 200 ms, with its jitter at least "
        "160 ms.")


def test_what_befell_the_holder_after_its_failure_makes_it_a_redelivery() -> None:
    at_once = [born(1, 2), failed(100), ran(120, 130, attempt=2, by=2)]
    assert told(at_once) == "violated 1"
    assert told(at_once, killed(1, 110)) == ""


@pytest.mark.parametrize(("started", "status"), [
    (510, "holds 1"), (508, "holds 1"), (507, "violated 1")])
def test_a_delayed_task_is_not_early(started: int, status: str) -> None:
    assert says(check, submit(at=10, delay_ms=500), born(1), ran(started, started + 5))[
        "SCHED-01"] == status


def test_a_submission_sent_twice_counts_from_the_first_time() -> None:
    twice = [submit(at=10, outcome="unknown", delay_ms=500), submit(at=90, delay_ms=500)]
    assert says(check, twice, born(1), ran(520, 530))["SCHED-01"] == "holds 1"


# The upper edge ---------------------------------------------------------------------------------

WORKER = [born(1, at=1, concurrency=2), submit("f" * 32), ran(5, 6, "f" * 32)]


def late(started: int, *parts: Any) -> str:
    """A retry that was due by 1220 and may start until 1770."""
    return says(check, submit(), WORKER, failed(1100), ran(started, started + 10, attempt=2),
                *parts).get("SCHED-02", "")


@pytest.mark.parametrize(("started", "status"), [
    (1200, "holds 1"), (1770, "holds 1"), (1771, "violated 1")])
def test_what_is_due_starts_within_an_interval_and_half_a_second(started: int,
                                                                 status: str) -> None:
    assert late(started) == status


def test_a_stall_may_explain_what_is_late_by_no_more_than_it() -> None:
    assert late(1900, stall(1300, 1430)) == "unknown 1"
    assert late(1901, stall(1300, 1430)) == "violated 1"


def test_a_dead_leader_may_take_ten_seconds_more() -> None:
    dead = [born(2), killed(2, 50)]
    assert late(1900, dead) == "holds 1"
    assert late(11_770, dead) == "holds 1"
    assert late(11_771, dead) == "violated 1"


@pytest.mark.parametrize(("from_ms", "to_ms", "status"), [
    (1050, 1890, ""), (1500, 1890, "violated 1"), (1050, 1250, ""), (1050, 1060, ""),
    (500, 600, "violated 1")])
def test_a_worker_without_room_may_be_late(from_ms: int, to_ms: int, status: str) -> None:
    """With the failed attempt, which may not be settled yet, one more fills both slots."""
    assert late(1900, submit("e" * 32), ran(from_ms, to_ms, "e" * 32)) == status


def test_a_retry_that_is_late_has_waited_too_long() -> None:
    assert says(check, submit(), WORKER, failed(1100), ran(1771, 1780, attempt=2))[
        "RETRY-12"] == "violated 1"
    assert "RETRY-12" not in says(check, submit(delay_ms=100), WORKER, ran(900, 910))


def test_a_handler_that_blocks_its_worker_may_hold_up_the_schedule() -> None:
    blocking = submit("e" * 32, steps=[{"block": 700}])
    assert late(1900, blocking, ran(1210, 1910, "e" * 32, by=2)) == ""


def test_nothing_is_late_while_a_fault_lies_on_the_run_or_right_after() -> None:
    assert late(1900, fault("delayed", 1080, 1300, worker=1)) == ""
    assert late(1900, fault("broker_away", 20, 90)) == ""


def test_a_worker_that_nobody_saw_at_work_before_may_have_been_starting() -> None:
    assert says(check, submit(delay_ms=10), born(1, concurrency=2), ran(900, 910)) == {
        "SCHED-01": "holds 1"}


def test_more_than_a_hundred_due_at_once_may_take_longer() -> None:
    many = [[submit(f"{number:032x}", delay_ms=100), ran(900, 905, f"{number:032x}")]
            for number in range(101)]
    worker = [born(1, at=1, concurrency=500), submit("f" * 32), ran(5, 6, "f" * 32)]
    assert "SCHED-02" not in says(check, worker, many)
    assert says(check, worker, many[1:])["SCHED-02"] == "violated 100"


# The jitter -------------------------------------------------------------------------------------

WIDE = header(timing=type(TIMING)(
    lease_ms=1000, heartbeat_ms=200, reap_ms=200, schedule_ms=50, drain_ms=3000, recovery_ms=5000,
    base_delay_ms=1500, max_delay_ms=1500, jitter=0.5))


def spread(delays: list[float], *parts: Any) -> tuple[str, str]:
    """The verdict on the jitter of these delays, in milliseconds, and its sentence."""
    tasks = [[submit(f"{number:032x}"), ran(100, 110, f"{number:032x}", "failed"),
              ran(110 + round(delay), 115 + round(delay), f"{number:032x}", attempt=2)]
             for number, delay in enumerate(delays)]
    verdict = next(v for v in check(History(WIDE, flat([born(1), tasks, *parts])))
                   if v.clause == "RETRY-06")
    return verdict.status, verdict.sentence


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("late_ms", [0, 30, 300, 550])
def test_delays_that_are_spread_are_not_accused_however_late(seed: int, late_ms: int) -> None:
    draw = random.Random(seed)
    status, sentence = spread([draw.uniform(750, 2250) + draw.uniform(0, late_ms)
                               for _ in range(200)])
    assert status == "holds"
    assert sentence.startswith("Of 200 delays")
    assert "probability below 2e-09" in sentence


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize(("lowest", "highest"), [
    (1500, 1500), (1500, 1510), (1500, 2250), (750, 1490), (750, 750)])
def test_delays_that_are_not_spread_are_found(seed: int, lowest: int, highest: int) -> None:
    draw = random.Random(seed)
    status, sentence = spread([draw.uniform(lowest, highest) for _ in range(240)])
    assert status == "violated"
    assert sentence.startswith("Of 240 delays 0 were ")


def test_fewer_than_two_hundred_delays_are_unknown() -> None:
    assert spread([1500.0] * 199)[0] == "unknown"
    assert spread([1500.0] * 200)[0] == "violated"


def test_what_a_stall_lay_on_speaks_for_the_target() -> None:
    assert spread([1500.0] * 240, stall(500, 650))[0] == "holds"


def test_a_jitter_too_narrow_to_be_seen_is_not_judged() -> None:
    """A fifth of 800 ms is less than a start may be late."""
    delays = [[submit(f"{number:032x}"), ran(100, 110, f"{number:032x}", "failed"),
               ran(210, 215, f"{number:032x}", attempt=2)] for number in range(240)]
    assert "RETRY-06" not in says(check, born(1), delays)


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.01, 0.99))
def test_the_probability_is_the_binomial_one(seen: int, count: int, chance: float) -> None:
    probability = at_most(seen, count, chance)
    assert 0 <= probability <= 1 + 1e-12
    assert at_most(count, count, chance) == pytest.approx(1)
    if seen < count:
        above = math.fsum(math.comb(count, k) * chance ** k * (1 - chance) ** (count - k)
                          for k in range(seen + 1, count + 1))
        assert probability + above == pytest.approx(1)

"""One attempt: how it ends, the pause after a failure, and results that fit and are JSON."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from dtq_reference import handlers, signing
from dtq_reference.calls import Identity, Outcome, Taken
from dtq_reference.errors import RetryableError
from dtq_reference.executor import (
    OVERDUE_EXIT_CODE,
    Executor,
    ResultNotJson,
    bounded_result,
    failure,
    retry_delay_ms,
)
from dtq_reference.handlers import TaskContext, task
from dtq_reference.hands import Hands, Hold
from dtq_reference.settings import Settings
from hypothesis import assume, given
from hypothesis import strategies as st

ATTEMPTS = st.integers(1, 1000)
DRAWS = st.floats(-1, 1)
DELAYS = st.floats(0, 86_400)
SETTINGS = st.builds(Settings, retry_base_delay=DELAYS, retry_max_delay=DELAYS,
                     retry_jitter=st.floats(0, 1))


@given(ATTEMPTS, SETTINGS, DRAWS)
def test_a_delay_is_the_capped_power_give_or_take_the_jitter(
        attempt: int, settings: Settings, draw: float) -> None:
    middle_ms = 1000 * min(settings.retry_max_delay,
                           settings.retry_base_delay * 2.0 ** (attempt - 1))
    expected = middle_ms * (1 + settings.retry_jitter * draw)
    assert retry_delay_ms(attempt, settings, draw) == pytest.approx(expected, abs=0.51)


# RETRY-12
@given(ATTEMPTS, SETTINGS)
def test_a_delay_that_is_drawn_lies_within_the_jitter_and_is_never_below_nought(
        attempt: int, settings: Settings) -> None:
    least, most = (retry_delay_ms(attempt, settings, draw) for draw in (-1, 1))
    assert 0 <= least <= retry_delay_ms(attempt, settings) <= most
    assert most <= round(1000 * settings.retry_max_delay * (1 + settings.retry_jitter))


@given(st.integers(1, 999), SETTINGS)
def test_without_jitter_each_delay_is_twice_the_one_before_until_the_cap(
        attempt: int, settings: Settings) -> None:
    now, following = (retry_delay_ms(number, settings, 0) for number in (attempt, attempt + 1))
    assert now <= following
    if following < round(1000 * settings.retry_max_delay):
        assert abs(following - 2 * now) <= 1


def test_the_defaults_begin_at_a_second_and_end_at_a_minute() -> None:
    assert [retry_delay_ms(attempt, Settings(), 0) for attempt in (1, 2, 3, 6, 7, 50)] == [
        1_000, 2_000, 4_000, 32_000, 60_000, 60_000]


@pytest.mark.slow
@given(st.recursive(st.none() | st.integers(-10**9, 10**9) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=300), lambda inner: st.lists(inner)),
    st.integers(64, 400))
def test_a_result_fits_is_valid_json_and_says_when_it_was_cut(value: Any, limit: int) -> None:
    result = bounded_result(value, limit)
    found = json.loads(result)
    assert len(result) <= limit
    if found != value:
        whole = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        assert found["truncated"] is True
        assert found["bytes"] > limit
        assert whole.startswith(found["excerpt"].encode()) or "\\u" in whole.decode()


@given(st.text(st.sampled_from('"\\\x00\x1f\x7f\nä€😀'), min_size=300))
def test_an_excerpt_of_what_must_be_escaped_fits_too(value: str) -> None:
    result = bounded_result(value, 256)
    assume(len(value.encode()) > 256)
    assert len(result) <= 256
    assert json.loads(result)["truncated"] is True


@pytest.mark.parametrize("value", [object(), "\ud800", {1.5: object()}])
def test_a_value_without_a_json_form_is_no_result(value: Any) -> None:
    with pytest.raises(ResultNotJson, match="the result is not JSON"):
        bounded_result(value, 1000)


def test_a_result_that_holds_itself_is_no_result() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ResultNotJson):
        bounded_result(value, 1000)


# Executing --------------------------------------------------------------------------------------

@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The handlers of these tests, and the list of those that were started, in order."""
    monkeypatch.setattr(handlers, "_registry", {})
    names: list[str] = []

    def handler(function: Callable[[], Awaitable[Any]]) -> None:
        @task(function.__name__)
        async def run(payload: dict[str, Any], ctx: TaskContext) -> Any:
            names.append(function.__name__)
            return await function()

    @handler
    async def sleeps() -> None:
        await asyncio.Event().wait()

    @handler
    async def swallows() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "all the same"

    @handler
    async def breaks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("while clearing up")

    @handler
    async def deaf() -> None:
        while "the end" not in names:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                names.append("not heard")

    return names


def taken(task_type: str, **fields: Any) -> Taken:
    return Taken(**{"level": 1, "entry_id": "1-0", "attempt": 1, "task_id": "a" * 32,
                    "task_type": task_type, "payload": b"{}", "max_attempts": 5,
                    "timeout_ms": 60_000, "queue": "default", "alone": False, "created_at": 0,
                    "idempotency_key": "", "signature": "", **fields})


class Bed:
    """An executor, the hands that it works for, and the outcomes that it hands in."""

    def __init__(self, settings: Settings) -> None:
        self.hands = Hands(settings, Identity("w", "0"), "default")
        self.outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self.executor = Executor(self.hands, lambda _, outcome: self.outcomes.put_nowait(outcome))

    async def outcome(self, task: Taken) -> Outcome:
        self.executor.start(Hold(task, math.inf))
        return await self.outcomes.get()


def execute(started: list[str], use: Callable[[Bed], Awaitable[Any]], **settings: Any) -> Any:
    """What `use` makes of an executor."""
    async def run() -> Any:
        try:
            return await use(Bed(Settings(**settings)))
        finally:
            started.append("the end")
    return asyncio.run(run())


# DLV-24
def test_an_attempt_whose_lease_has_run_out_before_its_turn_is_not_started(
        started: list[str]) -> None:
    async def use(bed: Bed) -> dict[Any, Hold]:
        late = Hold(taken("sleeps"), time.monotonic())
        bed.hands.holds[late.taken.hold] = late
        bed.executor.start(late)
        assert late.execution is not None
        await late.execution
        return bed.hands.holds

    assert execute(started, use) == {}
    assert started == ["the end"]


def cancelled(started: list[str], task: Taken) -> Outcome:
    """The outcome of an attempt that is asked to end twice, once it has started."""
    async def use(bed: Bed) -> Any:
        hold = Hold(task, math.inf)
        bed.executor.start(hold)
        while not started:
            await asyncio.sleep(0)
        hold.cancel()
        hold.cancel()
        return await bed.outcomes.get()

    outcome = execute(started, use)
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_cancelled_handler_ends_its_attempt_for_good(started: list[str]) -> None:
    outcome = cancelled(started, taken("sleeps"))
    assert (outcome.error_class, outcome.retryable) == ("Cancelled", False)


def test_a_handler_that_clears_up_and_returns_has_succeeded(started: list[str]) -> None:
    outcome = cancelled(started, taken("swallows"))
    assert (outcome.error_class, outcome.result) == (None, b'"all the same"')


def test_a_handler_that_breaks_when_it_is_cancelled_has_failed(started: list[str]) -> None:
    outcome = cancelled(started, taken("breaks"))
    assert outcome.error_class == "KeyError"


# CANCEL-03
def test_a_handler_is_cancelled_once_on_request_and_once_at_its_limit(started: list[str]) -> None:
    outcome = cancelled(started, taken("deaf", timeout_ms=100))
    assert outcome.error_class == "TimeoutError"
    assert started[:3] == ["deaf", "not heard", "not heard"]


# CANCEL-04
def test_a_handler_in_a_thread_runs_out(started: list[str]) -> None:
    go = threading.Event()

    @task("threaded")
    def threaded(payload: dict[str, Any], ctx: TaskContext) -> str:
        started.append("threaded")
        go.wait()
        return "done"

    timer = threading.Timer(0.05, go.set)
    timer.start()
    assert cancelled(started, taken("threaded")).result == b'"done"'


@pytest.mark.parametrize("what", ["lease", "drain"])
def test_what_came_too_late_is_not_started_but_dropped(started: list[str], what: str) -> None:
    async def use(bed: Bed) -> int:
        hold = Hold(taken("sleeps"), 0 if what == "lease" else math.inf)
        bed.hands.holds[hold.taken.hold] = hold
        if what == "drain":
            bed.hands.drain()
        bed.executor.start(hold)
        while bed.hands.holds:
            await asyncio.sleep(0)
        return bed.outcomes.qsize()

    assert execute(started, use) == 0
    assert started == ["the end"]


def test_a_cancellation_of_what_is_not_begun_does_nothing() -> None:
    Hold(taken("sleeps"), 0).cancel()


# WORK-08
def test_a_worker_is_stuck_when_every_slot_is_overdue_for_a_visibility_timeout(
        started: list[str]) -> None:
    async def use(bed: Bed) -> int:
        hands = bed.hands
        for number in (1, 2):
            assert hands.status == "ready"
            await bed.outcome(taken("deaf", timeout_ms=1, entry_id=f"{number}-0"))
        assert hands.status == "overdue"
        await asyncio.wait_for(hands.draining.wait(), 30)
        return hands.exit_code

    assert execute(started, use, worker_concurrency=2,
                   visibility_timeout_s=0.1) == OVERDUE_EXIT_CODE


def test_a_slot_that_is_freed_in_time_begins_the_count_anew(started: list[str]) -> None:
    go = threading.Event()

    @task("threaded")
    def threaded(payload: dict[str, Any], ctx: TaskContext) -> None:
        go.wait()

    async def use(bed: Bed) -> bool:
        hands = bed.hands
        await bed.outcome(taken("threaded", timeout_ms=1))
        assert hands.status == "overdue"
        go.set()
        while hands.overdue:
            await asyncio.sleep(0)
        await bed.outcome(taken("deaf", timeout_ms=1))
        assert hands.status == "overdue"
        await asyncio.sleep(0.2)  # the first alarm has gone off, the second is far away
        return hands.draining.is_set()

    assert not execute(started, use, worker_concurrency=1, visibility_timeout_s=0.25)


def failed(error: Exception) -> tuple[str | None, str, bool]:
    outcome = failure(taken("t"), error)
    return outcome.error_class, outcome.error_message, outcome.retryable


@pytest.mark.parametrize(("words", "recorded"), [
    ("a\nb \u2028 c", "a b c"), ("\x1b[31m\0", "\\x1b[31m\\x00"), ("\ud800", "\\ud800"),
    ("x" * 1000, "x" * 500)])
def test_what_an_error_says_is_one_short_clean_line(words: str, recorded: str) -> None:
    assert failed(ValueError(words)) == ("ValueError", recorded, False)


def test_an_error_that_cannot_say_what_it_is_is_one_all_the_same() -> None:
    class Mute(RetryableError):
        def __str__(self) -> str:
            raise KeyError

    assert failed(Mute()) == ("Mute", "its words cannot be had: KeyError", True)


def test_with_a_key_only_what_was_signed_is_started(started: list[str]) -> None:
    good = taken("swallows", timeout_ms=20)
    good = taken("swallows", timeout_ms=20, signature=signing.sign("k", good, "{}", 9))
    forged = taken("swallows", timeout_ms=20, payload=b'{"a":1}', signature=good.signature)
    for task_taken, error_class in ((good, "TimeoutError"), (forged, "BadSignature"),
                                    (taken("swallows"), "BadSignature")):
        started.clear()

        async def use(bed: Bed, task_taken: Taken = task_taken) -> Outcome:
            return await bed.outcome(task_taken)

        outcome = execute(started, use, signing_key="k")
        assert outcome.error_class == error_class
        assert ("swallows" in started) == outcome.retryable == (task_taken is good)

"""The demonstration tasks, and what `probe_task` does and witnesses, without a worker."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from dtq_reference import demo_tasks, handlers
from dtq_reference.errors import PermanentError, RetryableError
from dtq_reference.handlers import TaskContext

from tests.reference.engine import Engine

NAMES = ("echo_task", "sleep_task", "slow_task", "fibonacci_task", "flaky_task",
         "always_fail_task", "counter_task", "probe_task", "sync_probe_task")


def context(attempt: int = 1) -> TaskContext:
    return TaskContext("a" * 32, attempt, "w", "default", time.monotonic() + 60)


def do(name: str, payload: dict[str, Any], attempt: int = 1) -> Any:
    value = handlers.find(name)(payload, context(attempt))
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def probe(*steps: dict[str, Any], attempt: int = 1) -> Any:
    return do("probe_task", {"steps": list(steps), "label": "probed"}, attempt)


@pytest.fixture
def witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "witness"
    monkeypatch.setenv("DTQ_WITNESS", str(path))
    return path


def lines(witness: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in witness.read_text().splitlines()]


# DEMO-01
def test_the_demonstration_tasks_of_the_contract_are_registered() -> None:
    assert handlers.names() >= set(NAMES)


def test_echo_returns_its_payload_and_fibonacci_its_number() -> None:
    assert do("echo_task", {"a": 1}) == {"a": 1}
    assert do("fibonacci_task", {"n": 15}) == {"fibonacci": 610}


@pytest.mark.parametrize(("asked", "slept"), [(0.001, 0.001), (-1, 0.0), (31, 30.0), (1e9, 30.0)])
def test_sleep_sleeps_at_most_half_a_minute(
        asked: float, slept: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of_asyncio: list[float] = []

    async def sleep(seconds: float) -> None:
        asked_of_asyncio.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert do("sleep_task", {"seconds": asked}) == {"slept_s": slept}
    assert asked_of_asyncio == [slept]


def test_counter_counts() -> None:
    first = do("counter_task", {})["count"]
    assert do("counter_task", {})["count"] == first + 1


def test_flaky_fails_as_often_as_it_is_told_and_always_fail_always() -> None:
    for attempt in (1, 2):
        with pytest.raises(RetryableError):
            do("flaky_task", {"failures": 2}, attempt)
    assert do("flaky_task", {"failures": 2}, 3) == {"attempt": 3}
    with pytest.raises(RetryableError):
        do("always_fail_task", {}, 100)


# DEMO-03
def test_without_a_return_the_result_says_who_executed_which_attempt(witness: Path) -> None:
    assert probe({"sleep": 1}, {"block": 1}, {"busy": 1}, attempt=4) == {
        "attempt": 4, "worker_id": "w", "pid": os.getpid()}


# DEMO-04
def test_start_and_end_are_witnessed_with_all_that_a_judge_needs(witness: Path) -> None:
    probe({"return": 1})
    start, end = lines(witness)
    assert (start.pop("event"), end.pop("event"), end.pop("outcome")) == ("start", "end", "ok")
    assert start.pop("at_ns") <= end.pop("at_ns") <= time.monotonic_ns()
    assert start == end == {"task_id": "a" * 32, "attempt": 1, "worker_id": "w",
                            "pid": os.getpid(), "label": "probed"}


@pytest.mark.parametrize(("failure", "error"), [
    ("retryable", RetryableError), ("permanent", PermanentError), ("unknown", RuntimeError)])
def test_a_failure_is_raised_and_witnessed(
        witness: Path, failure: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        probe({"fail": failure})
    assert lines(witness)[-1]["outcome"] == "failed"


def test_a_step_may_be_for_the_first_attempts_only(witness: Path) -> None:
    step = {"fail": "retryable", "until_attempt": 2}
    with pytest.raises(RetryableError):
        probe(step, attempt=2)
    assert probe(step, {"return": "late"}, attempt=3) == "late"


def test_a_cancelled_attempt_is_witnessed_as_cancelled(witness: Path) -> None:
    async def cancelled() -> None:
        async with asyncio.timeout(0.01):
            await demo_tasks.probe_task({"steps": [{"sleep": 60_000}]}, context())

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    assert lines(witness)[-1]["outcome"] == "cancelled"


def test_an_unknown_step_is_a_permanent_failure_that_names_it(witness: Path) -> None:
    with pytest.raises(PermanentError, match="dance"):
        probe({"dance": True})


def test_a_guarded_step_is_done_by_the_first_attempt_alone(
        witness: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_REDIS_URL", engine.settings.redis_url)
    monkeypatch.setenv("DTQ_KEY_PREFIX", engine.keys.prefix)
    for attempt in (1, 2):
        result = probe({"once": "k"}, attempt=attempt)
        assert (result["attempt"], result["once"]) == (
            attempt, {"task_id": "a" * 32, "attempt": 1})
    assert probe({"once": "other"}, attempt=3)["once"]["attempt"] == 3
    assert probe({"once": "k"}, {"return": 5}) == 5


# HAND-02
def test_the_sync_probe_does_and_witnesses_the_same(witness: Path) -> None:
    with pytest.raises(PermanentError):
        do("sync_probe_task", {"steps": [{"sleep": 1}, {"fail": "permanent"}]})
    assert do("sync_probe_task", {"steps": [{"return": 3}]}) == 3
    assert [line.get("outcome") for line in lines(witness)] == [None, "failed", None, "ok"]


def test_results_of_a_given_size_and_without_a_json_form(witness: Path) -> None:
    assert probe({"return_bytes": 10}) == "x" * 10
    assert type(probe({"return_unserialisable": True})) is object


def test_without_a_witness_file_nothing_is_written(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DTQ_WITNESS", raising=False)
    monkeypatch.chdir(tmp_path)
    probe()
    assert list(tmp_path.iterdir()) == []

"""What is counted, under which labels, and that a process which serves nothing pays nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing

import pytest
from dtq_reference import metrics
from dtq_reference.calls import Outcome, Taken
from dtq_reference.errors import SettingsError
from dtq_reference.metrics import METRICS, NAMES_LIMIT, OFF, Metrics, Readings
from dtq_reference.settings import Settings
from prometheus_client.parser import text_string_to_metric_families

from tests.reference.engine import Engine

ALLOWED = {"queue", "task_type", "status", "result", "operation", "reason", "worker_id"}


EMPTY: Readings = {}


def samples(counting: Metrics, readings: Readings = EMPTY) -> dict[str, float]:
    """Every sample by its name and labels, buckets left out."""
    return {f"{sample.name}{sorted(sample.labels.items())}": sample.value
            for family in text_string_to_metric_families(counting.text(readings).decode())
            for sample in family.samples if not sample.name.endswith("_bucket")}


def sample(name: str, **labels: str) -> str:
    return f"{name}{sorted(labels.items())}"


@pytest.fixture
def taken(engine: Engine) -> Taken:
    engine.submit()
    return engine.take_one(engine.worker())


NAMES = {"queue": "default", "task_type": "echo_task"}


def test_a_success_is_counted_everywhere_it_belongs(taken: Taken) -> None:
    counting = Metrics()
    counting.started(taken, waited_s=2)
    counting.settled("w", Outcome(taken, 500), "succeeded", total_s=3)
    assert samples(counting) == {
        sample("dtq_tasks_started_total", **NAMES): 1,
        sample("dtq_tasks_succeeded_total", **NAMES): 1,
        sample("dtq_tasks_completed_total", **NAMES, status="succeeded"): 1,
        sample("dtq_task_attempts_total", **NAMES, result="success"): 1,
        sample("dtq_worker_tasks_total", worker_id="w", task_type="echo_task",
               result="success"): 1,
        sample("dtq_task_wait_seconds_count", **NAMES): 1,
        sample("dtq_task_wait_seconds_sum", **NAMES): 2,
        sample("dtq_task_execution_seconds_count", **NAMES): 1,
        sample("dtq_task_execution_seconds_sum", **NAMES): 0.5,
        sample("dtq_task_duration_seconds_count", **NAMES): 1,
        sample("dtq_task_duration_seconds_sum", **NAMES): 3}


def test_a_retry_ends_an_attempt_and_no_task(taken: Taken) -> None:
    counting = Metrics()
    outcome = Outcome(taken, 500, error_class="TimeoutError", retryable=True, delay_ms=1500)
    counting.settled("w", outcome, "retrying", total_s=3)
    found = samples(counting)
    assert found[sample("dtq_tasks_retried_total", **NAMES)] == 1
    assert found[sample("dtq_retry_delay_seconds_sum", **NAMES)] == 1.5
    assert found[sample("dtq_task_attempts_total", **NAMES, result="timeout")] == 1
    assert not [name for name in found if name.startswith(("dtq_tasks_completed",
                                                           "dtq_task_duration"))]


@pytest.mark.parametrize("status", ["failed", "dead_lettered"])
def test_an_end_without_success_is_counted_under_its_name(taken: Taken, status: str) -> None:
    counting = Metrics()
    counting.settled("w", Outcome(taken, 5, error_class="KeyError"), status, total_s=3)
    found = samples(counting)
    assert found[sample(f"dtq_tasks_{status}_total", **NAMES)] == 1
    assert found[sample("dtq_tasks_completed_total", **NAMES, status=status)] == 1
    assert found[sample("dtq_task_attempts_total", **NAMES, result="error")] == 1


def test_a_superseded_outcome_counts_for_nothing_else(taken: Taken) -> None:
    counting = Metrics()
    counting.settled("w", Outcome(taken, 5), "superseded", total_s=3)
    assert samples(counting) == {sample("dtq_tasks_superseded_total", **NAMES): 1}


def test_an_end_without_an_attempt_is_an_end() -> None:
    counting = Metrics()
    counting.finished("default", "echo_task", "expired")
    assert samples(counting) == {
        sample("dtq_tasks_completed_total", **NAMES, status="expired"): 1}


@pytest.mark.parametrize(("error_class", "result"), [
    (None, "success"), ("TimeoutError", "timeout"), ("RetryableError", "failure"),
    ("PermanentError", "failure"), ("ZeroDivisionError", "error"), ("WorkerLost", "error")])
def test_an_attempt_ends_in_one_of_four_ways(taken: Taken, error_class: str | None,
                                             result: str) -> None:
    counting = Metrics()
    counting.settled("w", Outcome(taken, 1, error_class=error_class), "failed", total_s=1)
    assert samples(counting)[sample("dtq_task_attempts_total", **NAMES, result=result)] == 1


def test_depths_are_shown_when_they_are_known_and_only_then() -> None:
    counting = Metrics()
    found = samples(counting, {
        "dtq_queue_depth": {"a": 3, "b": 0}, "dtq_queue_pending": {"a": 1, "b": 0},
        "dtq_retry_scheduled": {"": 2}, "dtq_dlq_depth": {"": 1}, "dtq_workers_active": {"": 4}})
    assert found == {
        sample("dtq_queue_depth", queue="a"): 3, sample("dtq_queue_depth", queue="b"): 0,
        sample("dtq_queue_pending", queue="a"): 1, sample("dtq_queue_pending", queue="b"): 0,
        sample("dtq_retry_scheduled"): 2, sample("dtq_dlq_depth"): 1,
        sample("dtq_workers_active"): 4}
    assert samples(counting) == {}


def test_depths_are_those_of_the_installation(engine: Engine) -> None:
    engine.submit()
    engine.submit(queue="mail", delay_ms=60_000)
    engine.submit(queue="mail")
    engine.take_one(engine.worker())
    found = engine.queue.do(metrics.readings(engine.queue.operations))
    assert found == {
        "dtq_queue_depth": {"default": 1, "mail": 2},
        "dtq_queue_pending": {"default": 1, "mail": 0},
        "dtq_retry_scheduled": {"": 1}, "dtq_dlq_depth": {"": 0}, "dtq_workers_active": {"": 1}}
    assert found.keys() == metrics.READ


def test_every_metric_has_its_kind_and_labels(taken: Taken) -> None:
    counting = Metrics()
    counting.submitted("default", "echo_task")
    counting.rejected("default", "QUEUE_FULL")
    counting.redis_operation("take", "ok")
    counting.started(taken, waited_s=1)
    counting.watch("w", lambda: 7)
    for outcome, state in ((Outcome(taken, 1), "succeeded"), (Outcome(taken, 1), "superseded"),
                           (Outcome(taken, 1, error_class="X"), "failed"),
                           (Outcome(taken, 1, error_class="X"), "dead_lettered"),
                           (Outcome(taken, 1, error_class="X"), "retrying")):
        counting.settled("w", outcome, state, total_s=1)
    shown = {}
    text = counting.text({name: {"default": 1} for name in metrics.READ}).decode()
    for family in text_string_to_metric_families(text):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        shown[name] = (family.type, labels, family.documentation)
    assert shown == {name: (metric.kind, set(metric.labels), metric.meaning)
                     for name, metric in METRICS.items()}
    assert sample("dtq_worker_inflight", worker_id="w") in samples(counting)
    assert {label for metric in METRICS.values() for label in metric.labels} == ALLOWED


def test_submitters_cannot_make_series_without_end() -> None:
    counting = Metrics()
    for number in range(NAMES_LIMIT + 50):
        counting.submitted("default", f"type-{number}")
    found = samples(counting)
    assert len(found) == NAMES_LIMIT + 1
    assert found[sample("dtq_tasks_submitted_total", queue="other", task_type="other")] == 50


def test_a_label_with_odd_characters_breaks_no_line() -> None:
    counting = Metrics()
    counting.submitted("default", 'a"\n\\b')
    assert list(samples(counting).values()) == [1]
    assert len([line for line in counting.text({}).decode().splitlines()
                if line.startswith("dtq_tasks_submitted_total{")]) == 1


# A worker's port --------------------------------------------------------------------------------

@pytest.fixture
def port() -> Iterator[int]:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        number: int = bound.getsockname()[1]
    yield number


def test_a_worker_serves_what_it_counts(port: int) -> None:
    counting = metrics.for_worker(Settings(worker_metrics_port=port))
    counting.redis_operation("take", "ok")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert 'dtq_redis_operations_total{operation="take",result="ok"} 1.0' in \
            answer.read().decode()
    with pytest.raises(SettingsError, match="DTQ_WORKER_METRICS_PORT"):
        metrics.for_worker(Settings(worker_metrics_port=port))


def test_a_worker_without_a_port_counts_nothing() -> None:
    assert metrics.for_worker(Settings()) is OFF
    assert not isinstance(OFF, Metrics)


def test_what_is_off_needs_no_prometheus_client(taken: Taken) -> None:
    OFF.submitted("a", "b")
    OFF.rejected("a", "b")
    OFF.redis_operation("a", "b")
    OFF.started(taken, waited_s=1)
    OFF.settled("w", Outcome(taken, 1), "succeeded", total_s=1)
    OFF.finished("a", "b", "c")
    OFF.watch("w", lambda: 1)
    code = ("import sys; sys.modules['prometheus_client'] = None; "
            "from dtq_reference import metrics, settings, errors\n"
            "assert metrics.for_worker(settings.Settings()) is metrics.OFF\n"
            "try: metrics.for_worker(settings.Settings(worker_metrics_port=1))\n"
            "except errors.SettingsError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "dtq-contract[metrics]" in done.stdout

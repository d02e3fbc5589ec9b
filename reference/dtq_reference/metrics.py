"""What a process counts, and how Prometheus reads it.

The API counts submissions and refusals, a worker what it starts and settles; depths are read from
Redis when the API is scraped. A process that serves no metrics has `OFF`, which counts nothing,
and needs no prometheus-client. No label ever holds an id, an error text or a payload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dtq_reference import calls
from dtq_reference.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtq_reference.calls import Outcome, Taken
    from dtq_reference.operations import Operations, Steps
    from dtq_reference.settings import Settings

NAMES_LIMIT = 1000
"""So many pairs of queue and task type have series of their own; submitters choose these names,
and what comes later is counted as `other`."""

BUCKETS_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)


@dataclass(frozen=True)
class Metric:
    """One row of the contract's table."""

    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    meaning: str


OF_A_TASK = ("queue", "task_type")

METRICS: dict[str, Metric] = {
    "dtq_tasks_submitted_total": Metric("counter", OF_A_TASK, "Tasks that were accepted."),
    "dtq_tasks_started_total": Metric("counter", OF_A_TASK, "Attempts that were taken."),
    "dtq_tasks_succeeded_total": Metric("counter", OF_A_TASK, "Tasks that succeeded."),
    "dtq_tasks_failed_total": Metric("counter", OF_A_TASK, "Tasks that ended as failed."),
    "dtq_tasks_retried_total": Metric("counter", OF_A_TASK, "Attempts that led to a retry."),
    "dtq_tasks_dead_lettered_total": Metric("counter", OF_A_TASK, "Tasks that were given up."),
    "dtq_tasks_superseded_total": Metric(
        "counter", OF_A_TASK, "Outcomes that came after the lease was lost, and were dropped."),
    "dtq_tasks_completed_total": Metric(
        "counter", (*OF_A_TASK, "status"), "Tasks that became terminal, by status."),
    "dtq_task_attempts_total": Metric(
        "counter", (*OF_A_TASK, "result"),
        "Attempts that ended: success, timeout, failure (the handler said so), error (the rest)."),
    "dtq_worker_tasks_total": Metric(
        "counter", ("worker_id", "task_type", "result"), "Attempts that ended, by worker."),
    "dtq_redis_operations_total": Metric(
        "counter", ("operation", "result"), "What was asked of Redis, and how it was answered."),
    "dtq_ingest_rejected_total": Metric(
        "counter", ("queue", "reason"), "Submissions that were refused, by code."),
    "dtq_queue_depth": Metric("gauge", ("queue",), "Unfinished tasks of a queue."),
    "dtq_queue_pending": Metric("gauge", ("queue",), "Tasks of a queue that are taken."),
    "dtq_retry_scheduled": Metric("gauge", (), "Tasks in the schedule."),
    "dtq_dlq_depth": Metric("gauge", (), "Dead letters."),
    "dtq_workers_active": Metric("gauge", (), "Workers that are not stale."),
    "dtq_worker_inflight": Metric("gauge", ("worker_id",), "Attempts that a worker has in hand."),
    "dtq_task_duration_seconds": Metric(
        "histogram", OF_A_TASK, "From acceptance to the terminal state."),
    "dtq_task_execution_seconds": Metric("histogram", OF_A_TASK, "What one attempt took."),
    "dtq_task_wait_seconds": Metric(
        "histogram", OF_A_TASK, "From the moment a task could start to the moment it was taken."),
    "dtq_retry_delay_seconds": Metric("histogram", OF_A_TASK, "How long a retry has to wait."),
}


@dataclass(frozen=True)
class Readings:
    """What a scrape of the API reads from Redis."""

    depth: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    retry_scheduled: int = 0
    dlq_depth: int = 0
    workers_active: int = 0


def readings(operations: Operations) -> Steps[Readings]:
    """Read what a scrape needs; `queue.AsyncQueue` carries it out."""
    queues = yield from operations.queues()
    workers = yield from operations.workers()
    keys = operations.keys
    scheduled, dead = yield calls.read(("ZCARD", keys.schedule), ("XLEN", keys.dead_letters))
    return Readings({queue.queue: queue.depth for queue in queues},
                    {queue.queue: queue.pending for queue in queues}, scheduled, dead,
                    sum(worker.status not in ("stopped", "stale") for worker in workers))


class Metrics:
    """Counts nothing: what a process has that serves no metrics."""

    def submitted(self, queue: str, task_type: str) -> None:
        """A submission was accepted as a new task."""

    def rejected(self, queue: str, reason: str) -> None:
        """A submission was refused; `reason` is the code, `queue` empty when none was named."""

    def redis_operation(self, operation: str, result: str) -> None:
        """Redis was asked for something: `ok`, `error` (it refused) or `unanswered`."""

    def started(self, taken: Taken, *, waited_s: float) -> None:
        """A take gave this attempt."""

    def settled(self, worker_id: str, outcome: Outcome, state: str, *, total_s: float) -> None:
        """A settlement was answered with `state`, `total_s` after the task was accepted."""

    def finished(self, queue: str, task_type: str, status: str) -> None:
        """A task became terminal."""

    def watch(self, worker_id: str, in_hand: Callable[[], int]) -> None:
        """Let scrapes ask how much a worker has in hand."""


OFF = Metrics()


class Counting(Metrics):
    """Counts, and writes what it counted as Prometheus reads it."""

    def __init__(self) -> None:
        import prometheus_client as prometheus

        # else each counter has a second series
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._generate = prometheus.generate_latest
        self.registry = prometheus.CollectorRegistry()
        self.content_type: str = prometheus.CONTENT_TYPE_LATEST
        self._readings: Readings | None = None
        self._names: set[tuple[str, str]] = set()
        self._metrics: dict[str, Any] = {}
        for name, metric in METRICS.items():
            if metric.kind == "histogram":
                self._metrics[name] = prometheus.Histogram(
                    name, metric.meaning, metric.labels, buckets=BUCKETS_S, registry=self.registry)
            elif metric.kind == "counter":
                self._metrics[name] = prometheus.Counter(
                    name, metric.meaning, metric.labels, registry=self.registry)
        name = "dtq_worker_inflight"
        self._in_hand = prometheus.Gauge(name, METRICS[name].meaning, METRICS[name].labels,
                                         registry=self.registry)
        self.registry.register(self)

    def submitted(self, queue: str, task_type: str) -> None:
        self._count("dtq_tasks_submitted_total", *self._named(queue, task_type))

    def rejected(self, queue: str, reason: str) -> None:
        self._count("dtq_ingest_rejected_total", self._named(queue, "")[0], reason)

    def redis_operation(self, operation: str, result: str) -> None:
        self._count("dtq_redis_operations_total", operation, result)

    def started(self, taken: Taken, *, waited_s: float) -> None:
        names = self._named(taken.queue, taken.task_type)
        self._count("dtq_tasks_started_total", *names)
        self._observe("dtq_task_wait_seconds", waited_s, *names)

    def settled(self, worker_id: str, outcome: Outcome, state: str, *, total_s: float) -> None:
        names = self._named(outcome.taken.queue, outcome.taken.task_type)
        if state == "superseded":
            self._count("dtq_tasks_superseded_total", *names)
            return
        result = result_of(outcome)
        self._count("dtq_task_attempts_total", *names, result)
        self._count("dtq_worker_tasks_total", worker_id, names[1], result)
        self._observe("dtq_task_execution_seconds", outcome.duration_ms / 1000, *names)
        if state == "retrying":
            self._count("dtq_tasks_retried_total", *names)
            self._observe("dtq_retry_delay_seconds", outcome.delay_ms / 1000, *names)
        else:
            self.finished(*names, state)
            self._observe("dtq_task_duration_seconds", total_s, *names)

    def finished(self, queue: str, task_type: str, status: str) -> None:
        names = self._named(queue, task_type)
        self._count("dtq_tasks_completed_total", *names, status)
        if f"dtq_tasks_{status}_total" in METRICS:
            self._count(f"dtq_tasks_{status}_total", *names)

    def watch(self, worker_id: str, in_hand: Callable[[], int]) -> None:
        self._in_hand.labels(worker_id).set_function(in_hand)

    def text(self, readings: Readings | None) -> bytes:
        """All of it in Prometheus' text format; without readings the gauges are left out, since
        a number that is not known must not look like one that is."""
        self._readings = readings
        return self._generate(self.registry)

    def collect(self) -> Iterator[Any]:
        """What prometheus-client asks a collector for: the gauges of this scrape."""
        from prometheus_client.core import GaugeMetricFamily

        if self._readings is None:
            return
        for name, value in (("dtq_queue_depth", self._readings.depth),
                            ("dtq_queue_pending", self._readings.pending),
                            ("dtq_retry_scheduled", self._readings.retry_scheduled),
                            ("dtq_dlq_depth", self._readings.dlq_depth),
                            ("dtq_workers_active", self._readings.workers_active)):
            gauge = GaugeMetricFamily(name, METRICS[name].meaning, labels=METRICS[name].labels)
            for label, number in (value.items() if isinstance(value, dict) else [("", value)]):
                gauge.add_metric([label] if METRICS[name].labels else [], number)
            yield gauge

    def _named(self, queue: str, task_type: str) -> tuple[str, str]:
        """The labels of a task, as long as there is room for new ones."""
        names = (queue, task_type)
        if names not in self._names:
            if len(self._names) >= NAMES_LIMIT:
                return ("other", "other")
            self._names.add(names)
        return names

    def _count(self, name: str, *labels: str) -> None:
        self._metrics[name].labels(*labels).inc()

    def _observe(self, name: str, seconds: float, *labels: str) -> None:
        self._metrics[name].labels(*labels).observe(max(0.0, seconds))


def result_of(outcome: Outcome) -> str:
    """How an attempt ended, in one of four words."""
    if outcome.error_class is None:
        return "success"
    if outcome.error_class == "TimeoutError":
        return "timeout"
    said_so = outcome.error_class in ("RetryableError", "PermanentError")
    return "failure" if said_so else "error"


def for_worker(settings: Settings) -> Metrics:
    """The metrics of a worker, served in a thread of their own; `OFF` without a port. Raises
    `SettingsError` when they cannot be served."""
    if settings.worker_metrics_port == 0:
        return OFF
    try:
        import prometheus_client as prometheus

        counting = Counting()
        prometheus.start_http_server(settings.worker_metrics_port, settings.api_host,
                                     counting.registry)
    except ImportError as error:
        raise SettingsError("DTQ_WORKER_METRICS_PORT needs prometheus-client: "
                            "pip install 'dtq-contract[metrics]'.") from error
    except OSError as error:
        raise SettingsError(f"DTQ_WORKER_METRICS_PORT is {settings.worker_metrics_port}: "
                            f"{settings.api_host} cannot be listened on there: "
                            f"{error.strerror or error}.") from error
    return counting

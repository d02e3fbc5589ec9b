"""What a process counts, and how Prometheus reads it.

The API counts submissions and refusals, a worker what it starts and settles; depths are read from
Redis when the API is scraped. A process that serves no metrics has `OFF`, which counts nothing,
and needs no prometheus-client. No label ever holds an id, an error text or a payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dtq_reference import calls
from dtq_reference.errors import SettingsError

if TYPE_CHECKING:
    from dtq_reference.calls import Outcome, Taken
    from dtq_reference.operations import Operations, Steps
    from dtq_reference.settings import Settings

NAMES_LIMIT = 1000
"""So many pairs of queue and task type have series of their own; submitters choose these names,
and what comes later is counted as `other`."""

BUCKETS_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)


class Metric(NamedTuple):
    """One row of the contract's table."""

    kind: str
    labels: tuple[str, ...]
    meaning: str


TASK = ("queue", "task_type")

METRICS: dict[str, Metric] = {f"dtq_{name}": Metric(*row) for name, row in {
    "tasks_submitted_total": ("counter", TASK, "Tasks that were accepted."),
    "tasks_started_total": ("counter", TASK, "Attempts that were taken."),
    "tasks_succeeded_total": ("counter", TASK, "Tasks that succeeded."),
    "tasks_failed_total": ("counter", TASK, "Tasks that ended as failed."),
    "tasks_retried_total": ("counter", TASK, "Attempts that led to a retry."),
    "tasks_dead_lettered_total": ("counter", TASK, "Tasks that were given up."),
    "tasks_superseded_total": ("counter", TASK, "Outcomes that came after the lease was lost."),
    "tasks_completed_total": ("counter", (*TASK, "status"), "Tasks that became terminal."),
    "task_attempts_total": ("counter", (*TASK, "result"), "Attempts that ended."),
    "worker_tasks_total": ("counter", ("worker_id", "task_type", "result"),
                           "Attempts that ended, by worker."),
    "redis_operations_total": ("counter", ("operation", "result"), "What Redis was asked."),
    "ingest_rejected_total": ("counter", ("queue", "reason"), "Submissions that were refused."),
    "queue_depth": ("gauge", ("queue",), "Unfinished tasks of a queue."),
    "queue_pending": ("gauge", ("queue",), "Tasks of a queue that are taken."),
    "retry_scheduled": ("gauge", (), "Tasks in the schedule."),
    "dlq_depth": ("gauge", (), "Dead letters."),
    "workers_active": ("gauge", (), "Workers that are not stale."),
    "worker_inflight": ("gauge", ("worker_id",), "Attempts that a worker has in hand."),
    "task_duration_seconds": ("histogram", TASK, "From acceptance to the terminal state."),
    "task_execution_seconds": ("histogram", TASK, "What one attempt took."),
    "task_wait_seconds": ("histogram", TASK, "From when a task could start to when it did."),
    "retry_delay_seconds": ("histogram", TASK, "How long a retry has to wait."),
}.items()}

READ = frozenset({"dtq_queue_depth", "dtq_queue_pending", "dtq_retry_scheduled", "dtq_dlq_depth",
                  "dtq_workers_active"})
"""Gauges whose values are read from Redis when the API is scraped."""

Readings = dict[str, dict[str, int]]
"""What a scrape of the API reads from Redis: a gauge's name, and for each queue its value; for a
gauge without labels there is only the queue of no name."""


def readings(operations: Operations) -> Steps[Readings]:
    """Read what a scrape needs; `queue.AsyncQueue` carries it out."""
    queues = yield from operations.queues()
    workers = yield from operations.workers()
    keys = operations.keys
    scheduled, dead = yield calls.read(("ZCARD", keys.schedule), ("XLEN", keys.dead_letters))
    active = sum(worker.status not in ("stopped", "stale") for worker in workers)
    return {"dtq_queue_depth": {queue.queue: queue.depth for queue in queues},
            "dtq_queue_pending": {queue.queue: queue.pending for queue in queues},
            "dtq_retry_scheduled": {"": scheduled}, "dtq_dlq_depth": {"": dead},
            "dtq_workers_active": {"": active}}


class Metrics:
    """Counts nothing: what a process has that serves no metrics."""

    def _add(self, name: str, labels: Sequence[str], value: float = 1) -> None:
        """Count, or observe a value in a histogram."""

    def _named(self, queue: str, task_type: str) -> tuple[str, str]:
        """The labels of a task."""
        return (queue, task_type)

    def submitted(self, queue: str, task_type: str) -> None:
        """A submission was accepted as a new task."""
        self._add("dtq_tasks_submitted_total", self._named(queue, task_type))

    def rejected(self, queue: str, reason: str) -> None:
        """A submission was refused; `reason` is the code, `queue` empty when none was named."""
        self._add("dtq_ingest_rejected_total", (self._named(queue, "")[0], reason))

    def redis_operation(self, operation: str, result: str) -> None:
        """Redis was asked for something: `ok`, `error` (it refused) or `unanswered`."""
        self._add("dtq_redis_operations_total", (operation, result))

    def started(self, taken: Taken, *, waited_s: float) -> None:
        """A take gave this attempt."""
        names = self._named(taken.queue, taken.task_type)
        self._add("dtq_tasks_started_total", names)
        self._add("dtq_task_wait_seconds", names, waited_s)

    def settled(self, worker_id: str, outcome: Outcome, state: str, *, total_s: float) -> None:
        """A settlement was answered with `state`, `total_s` after the task was accepted."""
        names = self._named(outcome.taken.queue, outcome.taken.task_type)
        if state == "superseded":
            self._add("dtq_tasks_superseded_total", names)
            return
        result = result_of(outcome)
        self._add("dtq_task_attempts_total", (*names, result))
        self._add("dtq_worker_tasks_total", (worker_id, names[1], result))
        self._add("dtq_task_execution_seconds", names, outcome.duration_ms / 1000)
        if state == "retrying":
            self._add("dtq_tasks_retried_total", names)
            self._add("dtq_retry_delay_seconds", names, outcome.delay_ms / 1000)
        else:
            self.finished(*names, state)
            self._add("dtq_task_duration_seconds", names, total_s)

    def finished(self, queue: str, task_type: str, status: str) -> None:
        """A task became terminal."""
        names = self._named(queue, task_type)
        self._add("dtq_tasks_completed_total", (*names, status))
        if f"dtq_tasks_{status}_total" in METRICS:
            self._add(f"dtq_tasks_{status}_total", names)

    def watch(self, worker_id: str, in_hand: Callable[[], int]) -> None:
        """Let scrapes ask how much a worker has in hand."""


OFF = Metrics()


class Counting(Metrics):
    """Counts, and writes what it counted as Prometheus reads it."""

    def __init__(self) -> None:
        import prometheus_client as prometheus

        # else each counter has a second series
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus.CollectorRegistry()
        self._generate = prometheus.generate_latest
        self.content_type: str = prometheus.CONTENT_TYPE_LATEST
        self._readings: Readings = {}
        self._names: set[tuple[str, str]] = set()
        kinds: dict[str, Any] = {
            "counter": prometheus.Counter, "gauge": prometheus.Gauge,
            "histogram": partial(prometheus.Histogram, buckets=BUCKETS_S)}
        self._metrics = {
            name: kinds[metric.kind](name, metric.meaning, metric.labels, registry=self.registry)
            for name, metric in METRICS.items() if name not in READ}
        self.registry.register(self)

    def _add(self, name: str, labels: Sequence[str], value: float = 1) -> None:
        metric = self._metrics[name].labels(*labels)
        (metric.inc if METRICS[name].kind == "counter" else metric.observe)(max(0.0, value))

    def _named(self, queue: str, task_type: str) -> tuple[str, str]:
        """The labels of a task, as long as there is room for new ones."""
        if (queue, task_type) not in self._names:
            if len(self._names) >= NAMES_LIMIT:
                return ("other", "other")
            self._names.add((queue, task_type))
        return (queue, task_type)

    def watch(self, worker_id: str, in_hand: Callable[[], int]) -> None:
        self._metrics["dtq_worker_inflight"].labels(worker_id).set_function(in_hand)

    def text(self, found: Readings) -> bytes:
        """All of it in Prometheus' text format; gauges that were not read are left out, since a
        number that is not known must not look like one that is."""
        self._readings = found
        return self._generate(self.registry)

    def collect(self) -> Iterator[Any]:
        """What prometheus-client asks a collector for: the gauges of this scrape."""
        from prometheus_client.core import GaugeMetricFamily

        for name, values in self._readings.items():
            gauge = GaugeMetricFamily(name, METRICS[name].meaning, labels=METRICS[name].labels)
            for queue, value in values.items():
                gauge.add_metric([queue] if METRICS[name].labels else [], value)
            yield gauge


def result_of(outcome: Outcome) -> str:
    """How an attempt ended: success, timeout, failure (the handler said so), error (the rest)."""
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

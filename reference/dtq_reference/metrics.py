"""What a process counts, and how Prometheus reads it.

The API counts submissions and refusals, a worker what it starts and settles; depths are read from
Redis when the API is scraped. A process that serves no metrics has `OFF`, which counts nothing,
and needs no prometheus-client. No label ever holds an id, an error text or a payload.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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
    """One row of the contract's table, which says more of what it tells."""

    kind: str
    labels: tuple[str, ...]
    meaning: str


TASK = ("queue", "task_type")

METRICS = {
    f"dtq_{name}": Metric(kind, labels, name.removesuffix("_total").replace("_", " "))
    for kind, labels, names in (
        ("counter", TASK, "tasks_submitted_total tasks_started_total tasks_succeeded_total "
         "tasks_failed_total tasks_retried_total tasks_dead_lettered_total tasks_superseded_total"),
        ("counter", (*TASK, "status"), "tasks_completed_total"),
        ("counter", (*TASK, "result"), "task_attempts_total"),
        ("counter", ("worker_id", "task_type", "result"), "worker_tasks_total"),
        ("counter", ("operation", "result"), "redis_operations_total"),
        ("counter", ("queue", "reason"), "ingest_rejected_total"),
        ("gauge", ("queue",), "queue_depth queue_pending"),
        ("gauge", (), "retry_scheduled dlq_depth workers_active"),
        ("gauge", ("worker_id",), "worker_inflight"),
        ("histogram", TASK, "task_duration_seconds task_execution_seconds task_wait_seconds "
         "retry_delay_seconds"),
    ) for name in names.split()}

READ = {name for name, metric in METRICS.items()
        if metric.kind == "gauge" and metric.labels != ("worker_id",)}
"""Gauges whose values are read from Redis when the API is scraped."""

RESULTS = {None: "success", "TimeoutError": "timeout", "RetryableError": "failure",
           "PermanentError": "failure"}
"""How an attempt ended, by its error class; failure: the handler said so. All others: error."""

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
    """Counts, and writes what it counted as Prometheus reads it."""

    def __init__(self) -> None:
        import prometheus_client as prometheus

        # else each counter has a second series
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._prometheus = prometheus
        self.registry = prometheus.CollectorRegistry()
        self.content_type: str = prometheus.CONTENT_TYPE_LATEST
        self._names: set[tuple[str, str]] = set()
        kinds: dict[str, Any] = {
            "counter": prometheus.Counter, "gauge": prometheus.Gauge,
            "histogram": partial(prometheus.Histogram, buckets=BUCKETS_S)}
        self._metrics = {
            name: kinds[metric.kind](name, metric.meaning, metric.labels, registry=self.registry)
            for name, metric in METRICS.items() if name not in READ}

    def submitted(self, queue: str, task_type: str) -> None:
        """A submission was accepted as a new task."""
        self._add({"queue": queue, "task_type": task_type}, tasks_submitted_total=1)

    def rejected(self, queue: str, reason: str) -> None:
        """A submission was refused; `reason` is the code, `queue` empty when none was named."""
        self._add({"queue": queue, "reason": reason}, ingest_rejected_total=1)

    def redis_operation(self, operation: str, result: str) -> None:
        """Redis was asked for something: `ok`, `error` (it refused) or `unanswered`."""
        self._add({"operation": operation, "result": result}, redis_operations_total=1)

    def started(self, taken: Taken, *, waited_s: float) -> None:
        """A take gave this attempt."""
        self._add({"queue": taken.queue, "task_type": taken.task_type},
                  tasks_started_total=1, task_wait_seconds=waited_s)

    def settled(self, worker_id: str, outcome: Outcome, state: str, *, total_s: float) -> None:
        """A settlement was answered with `state`, `total_s` after the task was accepted."""
        labels = {"queue": outcome.taken.queue, "task_type": outcome.taken.task_type,
                  "worker_id": worker_id, "result": RESULTS.get(outcome.error_class, "error")}
        if state == "superseded":
            self._add(labels, tasks_superseded_total=1)
            return
        self._add(labels, task_attempts_total=1, worker_tasks_total=1,
                  task_execution_seconds=outcome.duration_ms / 1000)
        if state == "retrying":
            self._add(labels, tasks_retried_total=1, retry_delay_seconds=outcome.delay_ms / 1000)
        else:
            self._add(labels, task_duration_seconds=total_s)
            self.finished(outcome.taken.queue, outcome.taken.task_type, state)

    def finished(self, queue: str, task_type: str, status: str) -> None:
        """A task became terminal."""
        self._add({"queue": queue, "task_type": task_type, "status": status},
                  tasks_completed_total=1, **{own: 1 for own in (f"tasks_{status}_total",)
                                              if f"dtq_{own}" in METRICS})

    def watch(self, worker_id: str, in_hand: Callable[[], int]) -> None:
        """Let scrapes ask how much a worker has in hand."""
        self._metrics["dtq_worker_inflight"].labels(worker_id).set_function(in_hand)

    def _add(self, labels: dict[str, str], **values: float) -> None:
        """Add to each metric that is named; of the labels each takes those that it has."""
        names = labels.get("queue", ""), labels.get("task_type", "")
        if names in self._names or len(self._names) < NAMES_LIMIT:
            self._names.add(names)
        else:
            labels = labels | {"queue": "other", "task_type": "other"}
        for name, value in values.items():
            kind, its_labels, _ = METRICS[f"dtq_{name}"]
            series = self._metrics[f"dtq_{name}"].labels(*(labels[each] for each in its_labels))
            (series.inc if kind == "counter" else series.observe)(max(0.0, value))

    def text(self, found: Readings) -> bytes:
        """All of it in Prometheus' text format; gauges that were not read are left out, since a
        number that is not known must not look like one that is."""
        read = self._prometheus.CollectorRegistry()
        for name, values in found.items():
            labels = METRICS[name].labels
            gauge = self._prometheus.Gauge(name, METRICS[name].meaning, labels, registry=read)
            for queue, value in values.items():
                (gauge.labels(queue) if labels else gauge).set(value)
        return b"".join(map(self._prometheus.generate_latest, (self.registry, read)))


class _Off:
    """Counts nothing, and takes no time to: what a process has that serves no metrics."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return _ignore


def _ignore(*_told: object, **_more: object) -> None:
    pass


OFF = cast(Metrics, _Off())


def for_worker(settings: Settings) -> Metrics:
    """The metrics of a worker, served in a thread of their own; `OFF` without a port. Raises
    `SettingsError` when they cannot be served."""
    if settings.worker_metrics_port == 0:
        return OFF
    try:
        import prometheus_client

        counting = Metrics()
        prometheus_client.start_http_server(settings.worker_metrics_port, settings.api_host,
                                            counting.registry)
    except (ImportError, OSError) as error:
        raise SettingsError(f"DTQ_WORKER_METRICS_PORT is {settings.worker_metrics_port}: {error}. "
                            "It needs a free port on DTQ_API_HOST, and prometheus-client: "
                            "pip install 'dtq-contract[metrics]'.") from error
    return counting

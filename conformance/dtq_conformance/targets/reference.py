"""The reference engine as a target. The only module of the harness that knows it, beside the
broken engines, which are the reference with one defect each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtq_reference.calls import Actor
from dtq_reference.errors import DtqError
from dtq_reference.operations import Steps, T
from dtq_reference.queue import Queue
from dtq_reference.settings import load

from dtq_conformance.operation import Refused
from dtq_conformance.target import (
    Accepted,
    Command,
    DeadLetter,
    Site,
    Submission,
    TaskView,
)

CLAIMED = frozenset({"delivery", "submission", "status", "retry", "schedule", "priority", "dlq",
                     "idempotency", "cancel", "ttl", "pause", "shutdown", "redis-schema",
                     "workers", "broker-trouble", "http", "cli", "configuration",
                     "security", "events", "backpressure", "metrics",
                     "durability:worker-loss", "durability:restart", "durability:power-loss",
                     "durability:failover", "handlers"})
"""What the reference wants to be judged by, of all that can be claimed."""


@dataclass(frozen=True)
class ReferenceKind:
    """The reference, or an engine derived from it whose `dtq` command is `program`."""

    name: str
    program: Sequence[str]
    claims: frozenset[str] = CLAIMED
    recovery_ms: int = 6_000
    preload: Sequence[str] = ("dtq_reference.cli", "dtq_reference.worker",
                              "dtq_reference.demo_tasks", "dtq_reference.process_pool",
                              "dtq_reference.api")

    def open(self, site: Site) -> ReferenceTarget:
        """Make it ready to be worked at this site."""
        return ReferenceTarget(self, site)


class ReferenceTarget:
    """The reference at one site: workers by its command, everything else by its client."""

    def __init__(self, kind: ReferenceKind, site: Site) -> None:
        self._kind = kind
        self._site = site
        self._queue = Queue(load(self._environment(site.broker_url)))

    def _environment(self, broker_url: str) -> dict[str, str]:
        timing = self._site.timing
        return {"DTQ_REDIS_URL": broker_url, "DTQ_KEY_PREFIX": self._site.prefix,
                "DTQ_WITNESS": str(self._site.witness),
                "DTQ_VISIBILITY_TIMEOUT_S": str(timing.lease_ms / 1000),
                "DTQ_HEARTBEAT_INTERVAL_S": str(timing.heartbeat_ms / 1000),
                "DTQ_REAP_INTERVAL_S": str(timing.reap_ms / 1000),
                "DTQ_SCHEDULER_INTERVAL_S": str(timing.schedule_ms / 1000),
                "DTQ_DRAIN_TIMEOUT_S": str(timing.drain_ms / 1000),
                "DTQ_RETRY_BASE_DELAY": str(timing.base_delay_ms / 1000),
                "DTQ_RETRY_MAX_DELAY": str(timing.max_delay_ms / 1000),
                "DTQ_RETRY_JITTER": str(timing.jitter),
                "DTQ_IDEM_TTL_S": str(max(1, round(timing.key_ms / 1000))),
                **self._site.settings}

    def worker(self, worker_id: str, concurrency: int, *, broker_url: str | None = None) -> Command:
        environment = self._environment(broker_url or self._site.broker_url)
        return Command([*self._kind.program, "worker", "run", "--concurrency", str(concurrency)],
                       {**environment, "DTQ_WORKER_ID": worker_id})

    def api(self, port: int) -> Command:
        return self.command("api", "run", "--tasks", "dtq_reference.demo_tasks",
                            DTQ_API_HOST="127.0.0.1", DTQ_API_PORT=str(port))

    def command(self, *arguments: str, **settings: str) -> Command:
        return Command([*self._kind.program, *arguments],
                       {**self._environment(self._site.broker_url), **settings})

    def submit(self, submission: Submission) -> Accepted:
        ttl = {"ttl_seconds": submission.ttl_ms / 1000} if submission.ttl_ms else {}
        key = {"idempotency_key": submission.idempotency_key} if submission.idempotency_key else {}
        try:
            accepted = self._queue.submit(
                task_type=submission.task_type, payload=submission.payload,
                task_id=submission.task_id, priority=submission.priority,
                max_attempts=submission.max_attempts, timeout_ms=submission.timeout_ms,
                delay_ms=submission.delay_ms, metadata=ttl, **key)
        except DtqError as error:
            raise _refused(error) from error
        return Accepted(task_id=accepted.task_id, duplicate=accepted.duplicate)

    def _do(self, steps: Steps[T]) -> T:
        try:
            return self._queue.do(steps)
        except DtqError as error:
            raise _refused(error) from error

    def cancel(self, task_id: str) -> str:
        return self._do(self._queue.operations.cancel(task_id, HARNESS))

    def pause(self) -> None:
        self._do(self._queue.operations.pause("default", HARNESS))

    def resume(self) -> None:
        self._do(self._queue.operations.resume("default", HARNESS))

    def purge(self) -> int:
        return self._do(self._queue.operations.purge_queue("default", HARNESS))

    def requeue(self, task_id: str) -> None:
        self._do(self._queue.operations.requeue(task_id, HARNESS))

    def discard(self, task_id: str) -> None:
        self._do(self._queue.operations.discard(task_id, HARNESS))

    def purge_dead_letters(self) -> int:
        return self._do(self._queue.operations.purge_dead_letters(HARNESS))

    def look(self, task_id: str) -> TaskView | None:
        task = self._queue.get(task_id)
        if task is None:
            return None
        return TaskView(task_id=task.task_id, status=task.status, attempt=task.attempt,
                        max_attempts=task.max_attempts, priority=task.priority,
                        task_type=task.task_type, result=task.result,
                        error_class=task.error_class)

    def dead_letters(self) -> list[DeadLetter]:
        return [DeadLetter(task_id=letter.task_id, attempts_made=letter.attempts_made,
                           error_class=letter.last_error_class)
                for letter in self._do(self._queue.operations.dead_letters(ALL))]

    def is_ready(self, worker_id: str) -> bool:
        try:
            self._queue.do(self._queue.operations.worker(worker_id))
        except DtqError:
            return False
        return True

    def close(self) -> None:
        self._queue.close()


HARNESS = Actor("harness")

ALL = 10_000
"""As many dead letters as there can be."""


def _refused(error: DtqError) -> Refused:
    return Refused(error.code, error.message, **error.details)


REFERENCE = ReferenceKind("reference", (sys.executable, "-m", "dtq_reference.cli"))


def derived(name: str, program: Sequence[str]) -> ReferenceKind:
    """An engine that is the reference but for one defect, which its program puts in."""
    return replace(REFERENCE, name=name, program=program)

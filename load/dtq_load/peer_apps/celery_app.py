"""Celery in its own processes: the app and its two tasks, for its worker, and the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery

from dtq_load.peer_apps import client
from dtq_load.peer_apps.client import URL

RETENTION_S = 3_600
"""As long as this engine keeps its results."""

app = Celery("bench", broker=URL, backend=f"{URL.rpartition('/')[0]}/1")
app.conf.update(
    result_expires=RETENTION_S,
    task_acks_late=True,
    worker_disable_rate_limits=True,
)


@app.task(name="nothing")
def nothing(number: int) -> int:
    return number


@app.task(name="hold")
def hold(number: int, ms: int) -> None:
    client.hold(number, ms)


class Submitter:
    """Submits through one producer of the pool, as the documentation says for many tasks."""

    def __init__(self) -> None:
        self._producer: Any = app.producer_pool.acquire(block=True)

    def connect(self, what: str) -> None:
        self._producer.connection.ensure_connection()
        if what == "latency":
            app.backend.client.ping()

    def submit(self, number: int) -> Any:
        return nothing.apply_async((number,), producer=self._producer)

    def submit_bulk(self, numbers: Sequence[int]) -> None:
        with self._producer.batch(len(numbers)):
            for number in numbers:
                self.submit(number)

    def wait(self, submitted: Any) -> object:
        return submitted.get(timeout=10)

    def hold(self, number: int, ms: int) -> None:
        hold.apply_async((number, ms), producer=self._producer)


def make_client() -> client.Client:
    submitter = Submitter()
    return client.Client(submitter.submit, submitter.submit_bulk, submitter.wait, submitter.hold,
                         submitter.connect)

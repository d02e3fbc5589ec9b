"""This engine in its own processes: the two tasks, which its worker loads, and the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import redis
from dtq_reference.handlers import TaskContext, task
from dtq_reference.keys import Keys
from dtq_reference.queue import Queue
from dtq_reference.settings import load

from dtq_load.peer_apps import client
from dtq_load.peer_apps.client import URL, witness


@task("nothing")
async def nothing(payload: dict[str, Any], ctx: TaskContext) -> Any:
    return payload["number"]


@task("hold")
async def hold(payload: dict[str, Any], ctx: TaskContext) -> None:
    witness("start", payload["number"])
    await asyncio.sleep(payload["ms"] / 1000)
    witness("end", payload["number"])


class Submitter:
    """The synchronous client, and for the wait the channel of events that the contract has."""

    def __init__(self) -> None:
        settings = load()
        self._queue = Queue(settings)
        client: Any = redis.Redis.from_url(URL)
        self._events = client.pubsub(ignore_subscribe_messages=True)
        self._channel = Keys(settings.key_prefix).events

    def connect(self, what: str) -> None:
        self._queue.get("0" * 32)
        if what == "latency":
            self._events.subscribe(self._channel)
            self._events.get_message(timeout=5)

    def submit(self, number: int) -> str:
        return self._queue.submit(task_type="nothing", payload={"number": number}).task_id

    def submit_bulk(self, numbers: Sequence[int]) -> None:
        answers = self._queue.do(self._queue.operations.submit_all(
            [{"task_type": "nothing", "payload": {"number": number}} for number in numbers]))
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer

    def wait(self, task_id: str) -> object:
        while True:
            message = self._events.get_message(timeout=10)
            if message is None:
                raise SystemExit(f"no event of task {task_id} came for 10 s")
            event = msgspec.json.decode(message["data"])
            if event["task_id"] == task_id and event["type"] == "TASK_SUCCEEDED":
                found = self._queue.get(task_id)
                return found and found.result

    def hold(self, number: int, ms: int) -> None:
        self._queue.submit(task_type="hold", payload={"number": number, "ms": ms})


def make_client() -> client.Client:
    submitter = Submitter()
    return client.Client(submitter.submit, submitter.submit_bulk, submitter.wait, submitter.hold,
                         submitter.connect)

"""Dramatiq in its own processes: the two actors, which its worker loads, and the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from dtq_load.peer_apps import client
from dtq_load.peer_apps.client import URL

RETENTION_MS = 3_600_000
"""As long as this engine keeps its results."""

broker = RedisBroker(url=URL)
broker.add_middleware(Results(
    backend=RedisBackend(url=URL, use_namespace_prefix_keys=True), result_ttl=RETENTION_MS))
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="nothing", store_results=True)
def nothing(number: int) -> int:
    return number


@dramatiq.actor(actor_name="hold")
def hold(number: int, ms: int) -> None:
    client.hold(number, ms)


def submit_bulk(numbers: Sequence[int]) -> None:
    dramatiq.group(nothing.message(number) for number in numbers).run()


def wait(message: Any) -> object:
    return message.get_result(block=True, timeout=10_000)


def make_client() -> client.Client:
    return client.Client(nothing.send, submit_bulk, wait, hold.send,
                         lambda _what: broker.client.ping())

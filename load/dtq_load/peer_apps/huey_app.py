"""Huey in its own processes: the two tasks, which its consumer loads, and the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from huey import RedisHuey

from dtq_load.peer_apps import client
from dtq_load.peer_apps.client import FOR_LATENCY, URL

huey = RedisHuey("bench", url=URL, notify_result=FOR_LATENCY)


@huey.task()
def nothing(number: int) -> int:
    return number


@huey.task()
def hold(number: int, ms: int) -> int:
    client.hold(number, ms)
    return number


def submit_bulk(numbers: Sequence[int]) -> None:
    nothing.map([(number,) for number in numbers])


def wait(result: Any) -> object:
    return result.get(blocking=True, timeout=10, preserve=True)


def make_client() -> client.Client:
    return client.Client(nothing, submit_bulk, wait, hold,
                         lambda _what: huey.storage.conn.ping())

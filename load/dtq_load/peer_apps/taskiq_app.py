"""taskiq in its own processes: the broker and its two tasks, for its worker, and the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import uvloop
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from dtq_load.peer_apps import client
from dtq_load.peer_apps.client import URL, witness

RETENTION_S = 3_600
"""As long as this engine keeps its results."""

LOOK_EVERY_S = 0.001
"""A result is asked for until it is there: taskiq has no other way."""

broker = RedisStreamBroker(URL).with_result_backend(
    RedisAsyncResultBackend(URL, result_ex_time=RETENTION_S, prefix_str="result"))


@broker.task(task_name="nothing")
async def nothing(number: int) -> int:
    return number


@broker.task(task_name="hold")
async def hold(number: int, ms: int) -> None:
    witness("start", number)
    await asyncio.sleep(ms / 1000)
    witness("end", number)


async def submit_bulk(numbers: Sequence[int]) -> None:
    await asyncio.gather(*(nothing.kiq(number) for number in numbers))


async def wait(task: Any) -> object:
    found = await task.wait_result(check_interval=LOOK_EVERY_S, timeout=10)
    return found.return_value


def make_client() -> client.Client:
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    do = loop.run_until_complete
    return client.Client(lambda number: do(nothing.kiq(number)),
                         lambda numbers: do(submit_bulk(numbers)), lambda task: do(wait(task)),
                         lambda number, ms: do(hold.kiq(number, ms)),
                         lambda _what: do(broker.startup()))

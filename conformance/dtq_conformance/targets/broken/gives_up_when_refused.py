"""A worker gives up to take, and to record, once the server has refused it for a while."""

from __future__ import annotations

import asyncio
from typing import Any

from dtq_reference import worker
from dtq_reference.calls import Call
from dtq_reference.transport import AsyncTransport, fate_of
from redis.exceptions import RedisError, ResponseError

from dtq_conformance.targets.defect import Defect


def _is_refusal(error: RedisError) -> bool:
    return isinstance(error, ResponseError) and fate_of(error) == "refused for now"


def _put_in() -> None:
    call_again = AsyncTransport.call_again

    async def impatient(self: AsyncTransport, call: Call, *, limit_s: float | None = None) -> Any:
        try:
            return await self.call(call)
        except RedisError as error:
            if limit_s is None and _is_refusal(error):
                raise
            return await call_again(self, call, limit_s=limit_s)

    async def give_up(duty: Any) -> None:
        while True:
            try:
                await duty.run()
                return
            except Exception as error:
                if isinstance(error, RedisError) and _is_refusal(error):
                    return
            await asyncio.sleep(worker.RESTART_PAUSE_S)

    AsyncTransport.call_again = impatient  # type: ignore[method-assign]
    worker._supervise = give_up


DEFECT = Defect(
    "gives_up_when_refused",
    "A worker gives up to take, and to record, once the server has refused it for a while.",
    caught_by=("broker_trouble_passes", "nothing_lost"), also=(),
    put_in=_put_in)

"""Renews each lease in a round trip of its own, one after the other."""

from __future__ import annotations

import asyncio
from typing import Any

from dtq_conformance.targets.defect import Defect

PROCESS = """
import msgspec.msgpack as msgpack
from dtq_reference import heartbeat_process as process
from dtq_reference.heartbeat_process import Beat, Told
beat = process.beat
def beat_for_each(connection, orders, told):
    beats = [beat(connection, orders, Told(told.argument, msgpack.encode([hold])))
             for hold in msgpack.decode(told.holds)] or [beat(connection, orders, told)]
    held = [each for one in beats for each in one.held or [1]]
    return Beat(told.holds, beats[0].sent, beats[-1].state, held, beats[-1].problem)
process.beat = beat_for_each
try:
    process.main()
except EOFError:
    pass
"""
"""What runs in place of the heartbeat's process."""


def _put_in() -> None:
    start = asyncio.create_subprocess_exec

    async def start_this(program: str, *_: str, **options: Any) -> Any:
        return await start(program, "-c", PROCESS, **options)

    asyncio.create_subprocess_exec = start_this  # type: ignore[assignment]


DEFECT = Defect(
    "renews_one_by_one",
    "Renews each lease in a round trip of its own, one after the other.",
    caught_by=("duplicates_justified",),
    also=("attempts_bounded", "dead_letters_complete", "drained_on_stop", "one_holder_at_a_time"),
    put_in=_put_in)

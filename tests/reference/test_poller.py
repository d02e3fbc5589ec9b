"""The poller: in which order it takes what waits, in a real worker, and how much at a time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference.calls import Identity, Taken
from dtq_reference.hands import Hands, Hold
from dtq_reference.poller import Poller

from tests.reference.engine import Engine
from tests.reference.processes import LIMIT_S, start_worker, wait_for_status


def test_an_ended_lease_keeps_its_place_however_full_the_higher_levels_are(
        lab: Lab, engine: Engine) -> None:
    """The first look for ended leases gets no further than the level that fills the worker, and
    the next interval is far away: the look must go on before anything lower is taken."""
    lost = engine.submit(task_type="probe_task", priority=4)
    assert engine.lose_holder().task_id == lost
    urgent = [engine.submit(task_type="probe_task", priority=9) for _ in range(5)]
    idle = [engine.submit(task_type="probe_task", priority=0) for _ in range(5)]
    wait_for(lambda: engine.redis.info("server")["uptime_in_seconds"] > 2, limit_s=LIMIT_S,
             reason="the server to be older than a lease")
    start_worker(lab, engine, concurrency=1, reap_interval_s=60)
    for task_id in (*urgent, lost, *idle):
        assert wait_for_status(engine, task_id).status == "succeeded"
    mine = {*urgent, lost, *idle}
    started = [line.task_id for line in lab.witness_lines()
               if line.event == "start" and line.task_id in mine]
    assert started == [*urgent, lost, *idle]


@pytest.mark.parametrize(("concurrency", "batches"), [
    (4, [4]), (8, [8]), (20, [8, 8, 4]), (30, [10, 10, 10])])
def test_a_take_asks_for_a_part_of_the_capacity_but_not_for_few(
        engine: Engine, concurrency: int, batches: list[int]) -> None:
    """So that one batch can be taken while another is executed."""
    for _ in range(40):
        engine.submit()
    taken: list[int] = []

    async def fill() -> None:
        settings = msgspec.structs.replace(engine.settings, worker_concurrency=concurrency)
        hands = Hands(settings, Identity("w", "0"), "default")
        hands.is_beating = True
        await hands.register(again=False)

        def begin(tasks: list[Taken], lease_until: float) -> None:
            taken.append(len(tasks))
            hands.holds |= {task.hold: Hold(task, lease_until) for task in tasks}
            if hands.room == 0:
                hands.drain()

        await Poller(hands, begin).run()
        await hands.transport.close()

    asyncio.run(fill())
    assert taken == batches

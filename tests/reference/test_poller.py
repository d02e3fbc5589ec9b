"""The poller: in which order it takes what waits, in a real worker, and how much at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference.calls import Call, Identity, Taken
from dtq_reference.hands import Hands, Hold
from dtq_reference.keys import GROUP
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


# Lost answers -------------------------------------------------------------------------------------

def test_what_is_in_hand_is_told_first_after_a_lost_answer_and_with_each_look_for_ended_leases(
        engine: Engine) -> None:
    told: list[bool] = []

    async def ask() -> None:
        hands = Hands(msgspec.structs.replace(engine.settings, reap_interval_s=60),
                      Identity("w", "0"), "default")
        await hands.register(again=False)
        send = hands.transport.call

        async def listening(call: Call) -> Any:
            told.append("in_hand" in msgspec.msgpack.decode(call.argument))
            if len(told) == 3:
                raise ConnectionError
            return await send(call)

        hands.transport.call = listening  # type: ignore[method-assign]
        poller = Poller(hands, lambda _tasks, _until: None)
        for _ in range(5):
            with suppress(ConnectionError):
                await poller._take(1)
        poller._next_reap = 0.0
        await poller._take(1)
        await hands.transport.close()

    asyncio.run(ask())
    assert told == [True, False, False, True, False, True]


@pytest.mark.parametrize("reap", [False, True])
def test_a_numbered_take_looks_for_lost_answers_only_with_ended_leases(
        engine: Engine, reap: bool) -> None:
    worker, lost = engine.worker(), engine.submit()
    engine.take_one(worker)
    new = engine.submit()
    first = engine.take(worker, number=1, reap=reap).tasks
    assert [taken.task_id for taken in first] == ([lost, new] if reap else [new])
    second = engine.take(worker, in_hand=first).tasks
    assert [taken.task_id for taken in second] == ([] if reap else [lost])


def test_a_numbered_take_is_not_given_again_what_a_new_group_hands_out(engine: Engine) -> None:
    worker, task_id = engine.worker(), engine.submit()
    in_hand = [engine.take_one(worker)]
    stream = engine.keys.stream("default", 5)
    engine.redis.xgroup_destroy(stream, GROUP)
    engine.redis.xgroup_create(stream, GROUP, id="0")
    assert engine.take(worker, in_hand=in_hand, number=1, reap=False).tasks == []
    assert engine.pending() == {task_id: worker.consumer}
    assert [taken.task_id for taken in engine.take(worker, reap=False).tasks] == [task_id]


def test_a_task_that_must_run_alone_waits_for_a_numbered_take_too(engine: Engine) -> None:
    engine.submit()
    worker = engine.worker()
    in_hand = [engine.take_one(worker)]
    alone = engine.submit()
    engine.redis.hset(engine.keys.task_prefix + alone, mapping={"losses": 2, "attempt": 3})
    reply = engine.take(worker, in_hand=in_hand, number=1, reap=False)
    assert (reply.tasks, reply.blocked) == ([], True)

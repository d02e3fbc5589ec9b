"""The poller in a real worker: in which order it takes what waits."""

from __future__ import annotations

from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for

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

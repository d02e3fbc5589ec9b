"""The reply to a settlement is lost on its way, and the worker sends it again.

Parameters: link (the worker's), worker, task_id. The toxic comes on while the handler runs, stays
until a direct connection shows the task finished, and is off while the worker still tries.
"""

from __future__ import annotations

from dtq_conformance.target import TERMINAL
from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.monitor import Monitor
from dtq_chaos.schedule import Entry

SEEN_LIMIT_S = 10.0

IN_A_ROW = 3
"""So many heartbeats tell the same before it is believed."""


def _begin(stage: Stage, entry: Entry) -> Bite:
    bench, link = stage.bench, stage.link(entry.parameters["link"])
    task_id, worker = entry.parameters["task_id"], stage.worker(entry.parameters["worker"])

    def is_settled() -> bool:
        view = bench.look(task_id, always=False)
        return view is not None and view.status in TERMINAL

    def told() -> tuple[int, int]:
        return bench.keyspace.told_by(worker.worker_id)

    heard: list[tuple[int | None, tuple[int, int]]] = []

    def steady() -> bool:
        """One that the cut link held up may come late, and tell of an earlier time."""
        now = bench.keyspace.last_heartbeat_ms(worker.worker_id), told()
        if not heard or heard[-1][0] != now[0]:
            heard.append(now)
        last = {tale for _, tale in heard[-IN_A_ROW:]}
        return len(heard) >= IN_A_ROW and len(last) == 1 and heard[-1][1][0] == 0

    before = sum(line.pid == worker.pid for line in bench.witnessed("end"))
    stage.await_quietly(lambda: told() == (0, before), reason="a heartbeat that tells of what was "
                        "settled before")
    with Monitor(bench.keyspace.client) as monitor:
        bench.submit({"sleep": 400}, task_id=task_id, label="victim")
        bench.await_witness("start", label="victim")
        link.add("timeout", stream="downstream", timeout=0)
        end = bench.await_witness("end", label="victim")
        wait_for(is_settled, limit_s=SEEN_LIMIT_S,
                 reason="the settlement's effect, seen on a direct connection")
        link.clear()
        stage.await_quietly(
            lambda: monitor.times_sent(task_id, not_before_ns=end.at_ns) >= 2,
            reason="the settlement to be sent again")
        sent = monitor.times_sent(task_id, not_before_ns=end.at_ns)
    stage.await_quietly(steady, reason="heartbeats that tell the same of an empty hand")
    return Bite([worker.pid], {"of": "settlement", "task_id": task_id, "sent": sent,
                               "entries": bench.keyspace.entries_of(task_id),
                               "counted": heard[-1][1][1] - before})


KIND = FaultKind("lose_settlement_reply", "reply_lost", _begin)

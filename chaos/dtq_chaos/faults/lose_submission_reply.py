"""The reply to a submission is lost on its way, and the client sends it again.

Parameters: link (the client's), task_id, label. The toxic is on until a direct connection shows
the effect, and off while the client still tries.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.monitor import Monitor
from dtq_chaos.schedule import Entry

SEEN_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    bench, link = stage.bench, stage.link(entry.parameters["link"])
    task_id, label = entry.parameters["task_id"], entry.parameters["label"]
    client = bench.open_target(link.url(bench.lab.broker.url))
    with contextlib.closing(client), Monitor(bench.keyspace.client) as monitor, \
            ThreadPoolExecutor(1) as background:
        bench.submit(label=label, through=client)  # connected, and the script is known
        link.add("timeout", stream="downstream", timeout=0)
        submitting = background.submit(bench.submit, {"sleep": 20}, label=label,
                                       task_id=task_id, through=client)
        wait_for(lambda: bench.look(task_id, always=False), limit_s=SEEN_LIMIT_S,
                 reason="the submission's effect, seen on a direct connection")
        link.clear()
        submitting.result()
        stage.await_quietly(lambda: monitor.times_sent(task_id) >= 2,
                            reason="MONITOR to show the submission again")
        sent = monitor.times_sent(task_id)
    return Bite(detail={"of": "submission", "task_id": task_id, "sent": sent,
                        "entries": bench.keyspace.entries_of(task_id)})


KIND = FaultKind("lose_submission_reply", "reply_lost", _begin)

"""The reply to a take is lost on its way: the broker has handed a task over, the worker has not
heard of it.

Parameters: link (the worker's), worker, task_id, asks_to_stop, pauses. Replies are slow while a
task is submitted; when a direct connection shows it in the worker's hands, and before the reply can
have arrived, the link is cut, and healed at once; if that is wanted, when the worker has been sent
a SIGTERM, or the queue has been paused.
"""

from __future__ import annotations

import time

from dtq_conformance.waiting import WaitedTooLong, wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

LATENCY_MS = 250
SEEN_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    bench, link = stage.bench, stage.link(entry.parameters["link"])
    task_id, worker = entry.parameters["task_id"], stage.worker(entry.parameters["worker"])
    link.add("latency", stream="downstream", latency=LATENCY_MS)
    bench.submit({"sleep": 50}, task_id=task_id, label="victim", max_attempts=1)
    submitted_ns = not_yet_ns = time.monotonic_ns()

    def is_taken() -> bool:
        nonlocal not_yet_ns
        asked_ns = time.monotonic_ns()
        if task_id in bench.keyspace.in_hand(worker.name):
            return True
        not_yet_ns = asked_ns
        return False

    try:
        wait_for(is_taken, every_s=0.005, limit_s=SEEN_LIMIT_S,
                 reason=f"the broker to hand the task over to {worker.name}")
    except WaitedTooLong:
        not_yet_ns = submitted_ns  # for longer than the reply was delayed: that leaves no mark
    link.cut()
    cut_ns = time.monotonic_ns()
    link.clear()
    pids = worker.process.pids()
    if asks_to_stop := entry.parameters.get("asks_to_stop", False):
        worker.process.terminate()
    if pauses := entry.parameters.get("pauses", False):
        bench.pause()
    link.heal()
    return Bite(pids, {
        "of": "take", "asks_to_stop": asks_to_stop, "pauses": pauses, "task_id": task_id,
        "worker": worker.name, "latency_ms": LATENCY_MS,
        "underway_ms": round((cut_ns - not_yet_ns) / 1e6, 1)})


KIND = FaultKind("lose_take_reply", "reply_lost", _begin)

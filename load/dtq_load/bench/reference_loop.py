"""The reference loop: the server driven by a plain pipeline, to compare runs of other machines by.

Comes in: a stand. Goes out: tasks per second through the commands that any stream queue needs,
in batches of 100: XREADGROUP and a hash's status when it is taken, then its end in the hash, a
result, XACK and XDEL. It promises nothing, and executes nothing.
"""

from __future__ import annotations

from typing import Any

from dtq_load.bench.stand import Stand, now_s

BATCH = 100
STREAM, GROUP, WORKER = "reference:stream", "workers", "loop"
TASK, RESULT = "reference:task:", "reference:result:"
RETENTION_S = 3600


def fill(stand: Stand, *, tasks: int) -> Any:
    """Have so many tasks wait, and nothing else; returns the client that did it."""
    stand.clear()
    client: Any = stand.redis
    client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    for start in range(0, tasks, BATCH):
        pipe = client.pipeline(transaction=False)
        for number in range(start, min(start + BATCH, tasks)):
            pipe.hset(f"{TASK}{number}", mapping={"status": "queued", "payload": "{}"})
            pipe.xadd(STREAM, {"number": number})
        pipe.execute()
    return client


def measure(stand: Stand, *, tasks: int) -> float:
    """Tasks per second."""
    client = fill(stand, tasks=tasks)
    begun, done = now_s(), 0
    while done < tasks:
        [(_, entries)] = client.xreadgroup(GROUP, WORKER, {STREAM: ">"}, count=BATCH)
        _write(client, entries, status="running")
        _write(client, entries, status="succeeded", ended=True)
        done += len(entries)
    return tasks / (now_s() - begun)


def _write(client: Any, entries: list[Any], *, status: str, ended: bool = False) -> None:
    pipe = client.pipeline(transaction=False)
    for entry_id, fields in entries:
        number = fields[b"number"].decode()
        pipe.hset(f"{TASK}{number}", mapping={"status": status, "holder": WORKER})
        if ended:
            pipe.set(f"{RESULT}{number}", number, ex=RETENTION_S)
            pipe.xack(STREAM, GROUP, entry_id)
            pipe.xdel(STREAM, entry_id)
    pipe.execute()

"""The calls of a task and nothing else: a worker and a client over blocking sockets.

`worker` is rung for, takes and settles for ever; `latency N` submits N times, each time waits until
the settlement is told, looks at the result, and prints {"ms": [...]}, the first time left out. The
scripts do nothing but what wakes the other side.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from typing import Any

from dtq_reference.cluster import address_of
from dtq_reference.wire import Connection

from dtq_load.peer_apps.client import URL

STREAM, DONE = "bare:stream", "bare:done"
NOTHING = "return 1"
SUBMIT = "return redis.call('XADD', KEYS[1], '*', 'task', '1')"
SETTLE = SUBMIT
LIMIT_S = 20.0


def connect() -> Connection:
    return Connection(address_of(URL), LIMIT_S)


def run(connection: Connection, script: str, key: str) -> Any:
    return connection.run(hashlib.sha1(script.encode()).hexdigest(), script, [key], b"")


def next_after(last: bytes, stream: str, ear: Connection) -> bytes:
    """Wait for an entry; returns its id. Raises `SystemExit` when none comes for long."""
    heard = ear.call("XREAD", "COUNT", 1, "BLOCK", round(900 * LIMIT_S), "STREAMS", stream, last)
    if not heard:
        raise SystemExit(f"nothing came on {stream} for long")
    entry_id: bytes = heard[0][1][0][0]
    return entry_id


def work() -> None:
    """Until it is killed, or nothing comes for long."""
    bell, hands, last = connect(), connect(), b"0-0"
    while True:
        last = next_after(last, STREAM, bell)
        run(hands, NOTHING, STREAM)
        run(hands, SETTLE, DONE)


def latency(count: int) -> list[float]:
    """Milliseconds of each time but the first."""
    hands, ear, last = connect(), connect(), b"0-0"
    found = []
    for _ in range(count + 1):
        begun = time.perf_counter()
        run(hands, SUBMIT, STREAM)
        last = next_after(last, DONE, ear)
        run(hands, NOTHING, STREAM)
        found.append((time.perf_counter() - begun) * 1000)
    return found[1:]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["worker"]:
            work()
        case ["latency", count]:
            print(json.dumps({"ms": latency(int(count))}))
        case words:
            raise SystemExit(f"{' '.join(words)}: expected worker, or latency N")

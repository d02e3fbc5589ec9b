"""Takes snapshots of the key space while a trial runs, at instants drawn from the run's seed.

Comes in: the broker of a lab. Goes out: `Snapshot` records, or one that says why there is none. It
has a thread and a client of its own, and costs the server a small share of its time at most.
"""

from __future__ import annotations

import random
import threading
import time
from types import TracebackType

import msgspec
import redis

from dtq_conformance import snapshot
from dtq_conformance.broker import Broker
from dtq_conformance.snapshot import Snapshot

LEAST_S, MOST_S = 0.15, 0.45
"""The pause between two snapshots is drawn evenly from here."""
SHARE = 0.05
"""A pause is longer when a snapshot takes long: no more than this share of the time goes there."""
MOST_KEYS = 5_000
"""A server that is not ours is not held up to look for our keys among more than so many."""


class SnapshotTaker:
    """Takes snapshots within its block, the last one at its end. Then `records` has them all."""

    def __init__(self, broker: Broker, seed: int) -> None:
        self.records: list[Snapshot] = []
        self._broker = broker
        self._random = random.Random(f"snapshots {seed}")
        self._trouble = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)

    def __enter__(self) -> SnapshotTaker:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        if not self.records:
            now_ns = time.monotonic_ns()
            self.records.append(Snapshot(at_ns=now_ns, asked_ns=now_ns, not_taken=self._trouble))

    def _run(self) -> None:
        with self._broker.connect() as client:
            while True:
                is_last = self._over.is_set()
                began = time.monotonic()
                self._take(client)
                if is_last:
                    return
                spent_s = time.monotonic() - began
                self._over.wait(max(self._random.uniform(LEAST_S, MOST_S), spent_s / SHARE))

    def _take(self, client: redis.Redis) -> None:
        """Take one. While the broker is away, or of a key space that cannot be read, none is."""
        try:
            if not self._broker.owned and (keys := client.dbsize()) > MOST_KEYS:
                self._trouble = (f"{self._broker.description} is not ours and has {keys} keys; "
                                 f"among more than {MOST_KEYS} ours are not looked for")
                return
            self.records.append(snapshot.take(client, self._broker.prefix))
        except (redis.RedisError, OSError, msgspec.MsgspecError) as error:
            self._trouble = f"{type(error).__name__}: {error}"

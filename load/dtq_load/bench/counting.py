"""How many commands a peer's clients send for a task, and how many its scripts call.

Comes in: a stand and a peer. Goes out: both numbers, from what the server's MONITOR shows while
tasks are drained, which slows everything down: nothing else is measured meanwhile. The looks from
outside are left out.
"""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from urllib.parse import urlsplit

from dtq_conformance.waiting import wait_for

from dtq_load.bench.drain import Watch
from dtq_load.bench.peer import Peer
from dtq_load.bench.stand import Stand

LINE = re.compile(rb'^\+\d+\.\d+ \[\d+ (\S+)\] "([^"]+)"', re.MULTILINE)


def count(text: bytes, *, own: str) -> tuple[int, int]:
    """Commands of clients and of scripts in what MONITOR showed, less those of the address `own`.
    """
    found = Counter("script" if source == b"lua" else "client"
                    for source, _ in LINE.findall(text) if source.decode() != own)
    return found["client"], found["script"]


def count_commands(stand: Stand, peer: Peer, *, tasks: int) -> tuple[float, float]:
    """Commands per task that clients send, and that scripts call."""
    stand.fill(peer, tasks)
    place = urlsplit(stand.lab.broker.url)
    shown: list[bytes] = []
    with socket.create_connection((place.hostname or "127.0.0.1", place.port or 6379)) as watcher:
        watcher.sendall(b"MONITOR\r\n")
        reader = threading.Thread(target=_read, args=(watcher, shown), daemon=True)
        reader.start()
        wait_for(lambda: shown, reason="MONITOR to begin", limit_s=10)
        with stand.working(peer, peer.size) as workers:
            Watch(stand, peer, workers, tasks).mark(tasks)
        own = str(stand.redis.client_info()["addr"])
        watcher.shutdown(socket.SHUT_RDWR)
        reader.join(10)
    client, script = count(b"".join(shown), own=own)
    return client / tasks, script / tasks


def _read(watcher: socket.socket, shown: list[bytes]) -> None:
    while data := watcher.recv(1 << 16):
        shown.append(data)

"""A peer: one task queue of the benchmark, in whatever language, worked by command lines alone.

Nothing here or in `peers/` imports a task queue. A peer's tasks, its worker's settings and its
client stand in `dtq_load/peer_apps/`, which runs in the peer's own processes. Worker and client get
three environment variables: BENCH_URL, the broker's redis:// URL; BENCH_WITNESS, a file; and
BENCH_FOR, `latency` when that is measured and `speed` otherwise, for peers with a documented option
that trades one for the other: each has its best at both.

The app defines two tasks. `nothing(number)` returns `number`; its result has to be kept for each
task, as this engine keeps it. `hold(number, ms)` appends `start NUMBER PID\\n` to the witness with
one write in append mode, sleeps so long in the way that suits the peer, and appends
`end NUMBER PID\\n`.

The client is a command line to which one of these is added:

    submit N          submit `nothing` N times, one after the other, each answered before the next
    submit N --bulk   the same in the best documented bulk way of the peer, in pieces of 500
    latency N         N times: submit `nothing`, wait for its result as the peer offers it
    hold N MS         submit `hold` N times, each for MS milliseconds, numbered from 0

It exits with 0 and prints one line of JSON as the last of its standard output: `{"seconds": 1.5}`
for `submit` and `hold`, without the time to start, import and connect; `{"ms": [1.2, …]}` for
`latency`, which has one more task before the first that counts. `submit N` submits N tasks and no
other. The app of a Python peer has a function `make_client()` for `peer_apps/client.py`, which does
the rest.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import redis

APPS = Path(__file__).parents[1] / "peer_apps"
"""The folder of the code that runs in the peers' own processes."""


class NotInstalled(Exception):
    """This peer cannot run here. The message is the reason and what to do, in one sentence."""


@dataclass(frozen=True)
class Size:
    """How large one worker, the processes of one command line, is: processes, and the slots that
    each of them has for tasks."""

    processes: int
    slots: int

    def __str__(self) -> str:
        return f"{self.processes} × {self.slots}"


@dataclass(frozen=True)
class Peer:
    """A task queue of the benchmark.

    `settings` is a sentence: which of its options are used, and why they are the best documented
    ones. `guarantee` is a sentence: what becomes of its tasks when a worker dies, and who says so.
    `size` is how large one worker is, the best of those in `sweep` where `dtq-load bench --search`
    was run; what a slot is (an asyncio task, a thread) is in `settings`.

    `version()` raises `NotInstalled`. `worker(size)` is the command line of one worker.
    `left(client, submitted)` tells, by one cheap round trip, how many of so many submitted tasks
    are not yet finished and recorded; it is asked every 20 ms while workers work.
    `kept(client)` counts the results that are kept; it is asked when nothing is measured and may
    look at every key.
    `environment(url)` is what worker and client need beside BENCH_…
    """

    name: str
    language: str
    settings: str
    guarantee: str
    size: Size
    sweep: tuple[Size, ...]
    version: Callable[[], str]
    worker: Callable[[Size], list[str]]
    client: list[str]
    left: Callable[[redis.Redis, int], int]
    kept: Callable[[redis.Redis], int]
    environment: Callable[[str], Mapping[str, str]] = lambda _url: {}


def python_version(package: str) -> str:
    """The version of an installed Python package. Raises `NotInstalled`."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(f"{package} is not installed here: pip install 'dtq-contract[bench]'") \
            from None


def python_app(name: str) -> list[str]:
    """The command line of the client of a module of `peer_apps`, in this interpreter."""
    return [sys.executable, "-P", "-m", "dtq_load.peer_apps", name]


def count_keys(client: redis.Redis, pattern: str) -> int:
    """How many keys match."""
    return sum(1 for _ in client.scan_iter(match=pattern, count=5000))

"""The stand: one server for all peers, their processes, and what can be read from outside.

Comes in: an open lab, whose broker is a server of our own. Goes out: workers that run while they
are needed, what a peer's client answered, and looks at server and processes, from which every
figure is a difference. Nothing is measured inside a peer.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psutil
from dtq_conformance.broker import last_line
from dtq_conformance.lab import Lab, LabProcess

from dtq_load.bench.peer import Peer, Size

CLIENT_LIMIT_S = 1800.0
"""How long a client may take, for a million tasks of a slow peer."""


class BenchError(Exception):
    """A peer did not do what its protocol says; the message says which, what and where."""


@dataclass(frozen=True)
class Counts:
    """What a server has counted since it started: commands, those inside scripts included; read
    and write events of client connections; seconds of its processor; and of each command its calls
    and the microseconds that it took, those of a script with all that it calls."""

    commands: float
    reads: float
    writes: float
    cpu_s: float
    calls: Mapping[str, float]
    us: Mapping[str, float] = field(default_factory=dict)

    def since(self, before: Counts) -> Counts:
        """The difference."""
        return Counts(self.commands - before.commands, self.reads - before.reads,
                      self.writes - before.writes, self.cpu_s - before.cpu_s,
                      _less(self.calls, before.calls), _less(self.us, before.us))

    def without(self, other: Counts, times: int) -> Counts:
        """Less so many times another, its times excepted."""
        return Counts(self.commands - other.commands * times, self.reads - other.reads * times,
                      self.writes - other.writes * times, self.cpu_s,
                      _less(self.calls, other.calls, times), self.us)

    @property
    def round_trips(self) -> float:
        """At most so many: a pipeline that comes in one piece is read in one event and answered in
        one; a large one comes in several pieces, of which a read or a write event tells."""
        return min(self.reads, self.writes)


def _less(these: Mapping[str, float], those: Mapping[str, float],
          times: int = 1) -> dict[str, float]:
    """By name, these less so many times those, where anything is left."""
    return {name: rest for name, value in these.items()
            if (rest := value - those.get(name, 0) * times) > 0}


class Stand:
    """One server and the processes of whichever peer is measured now."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.redis = lab.broker.connect(limit_s=60)
        self._numbers = itertools.count(1)

    def clear(self) -> None:
        """Forget everything on the server, and what the last tasks witnessed."""
        self.redis.flushall()
        self.lab.witness.write_bytes(b"")

    def environment(self, peer: Peer, purpose: str) -> dict[str, str]:
        """What worker and client of a peer are given."""
        url = self.lab.broker.url
        return {"BENCH_URL": url, "BENCH_WITNESS": str(self.lab.witness), "BENCH_FOR": purpose,
                **peer.environment(url)}

    def ask(self, peer: Peer, *words: str, purpose: str = "speed") -> dict[str, Any]:
        """Run the peer's client and return its answer. Raises `BenchError`."""
        done = self.lab.run([*peer.client, *words], environment=self.environment(peer, purpose),
                            limit_s=CLIENT_LIMIT_S)
        if done.returncode != 0:
            raise BenchError(f"{peer.name}: `{' '.join(words)}` exited with {done.returncode}: "
                             f"{done.stderr.strip()[-2000:]}")
        answer: dict[str, Any] = msgspec.json.decode(done.stdout.strip().splitlines()[-1])
        return answer

    def fill(self, peer: Peer, tasks: int) -> None:
        """Have so many tasks wait, and see that they do. Raises `BenchError`."""
        self.clear()
        self.ask(peer, "submit", str(tasks), "--bulk")
        if (left := peer.left(self.redis, tasks)) != tasks:
            raise BenchError(f"{peer.name}: of {tasks:,} submitted tasks {left:,} wait.")

    def start(self, peer: Peer, size: Size, purpose: str = "speed") -> LabProcess:
        """Start a worker."""
        return self.launch(peer.name, peer.worker(size), self.environment(peer, purpose))

    def launch(self, name: str, command: Sequence[str],
               environment: Mapping[str, str]) -> LabProcess:
        """Start any process; its name gets a number."""
        return self.lab.start(f"{name}-{next(self._numbers)}", command, role="worker",
                              environment=environment)

    @contextlib.contextmanager
    def working(self, peer: Peer, size: Size, count: int = 1,
                purpose: str = "speed") -> Iterator[list[LabProcess]]:
        """Within, so many workers run; afterwards none does."""
        workers: list[LabProcess] = []
        try:
            for _ in range(count):
                workers.append(self.start(peer, size, purpose))
            yield workers
        finally:
            end(workers)

    def counts(self) -> Counts:
        """What the server counts now; asking is one command and one round trip."""
        info: Any = self.redis.info("stats", "cpu", "commandstats")
        by = {name.removeprefix("cmdstat_"): about for name, about in info.items()
              if name.startswith("cmdstat_")}
        return Counts(float(info["total_commands_processed"]), float(info["total_reads_processed"]),
                      float(info["total_writes_processed"]),
                      float(info["used_cpu_user"]) + float(info["used_cpu_sys"]),
                      {name: float(about["calls"]) for name, about in by.items()},
                      {name: float(about["usec"]) for name, about in by.items()})

    def cost_of_a_look(self, peer: Peer, submitted: int) -> Counts:
        """What asking for `left` and nothing else costs the server. No worker may be running."""
        looks = 10
        before = self.counts()
        for _ in range(looks):
            peer.left(self.redis, submitted)
        spent = self.counts().since(before).without(ASKING, 1)
        return Counts(spent.commands / looks, spent.reads / looks, spent.writes / looks, 0.0,
                      {name: calls / looks for name, calls in spent.calls.items()})


ASKING = Counts(1, 1, 1, 0.0, {"info": 1})
"""What `Stand.counts` itself adds to the next one."""


def end(workers: Sequence[LabProcess]) -> None:
    """Kill workers: what they leave is cleared away."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.wait(10)


def require_alive(workers: Sequence[LabProcess]) -> None:
    """Raise `BenchError` with the last line of its log if one has ended."""
    for worker in workers:
        if not worker.alive:
            raise BenchError(f"{worker.name} has ended; the last line of {worker.log} is: "
                             f"{last_line(worker.log)}")


@dataclass(frozen=True)
class Process:
    """A process of a worker: seconds of processor that it has used, megabytes that it holds."""

    pid: int
    cpu_s: float
    rss_mb: float


def look_at(worker: LabProcess) -> list[Process]:
    """The worker's processes, the one that was started first."""
    found = []
    for pid in worker.pids():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            times = process.cpu_times()
            found.append(Process(pid, times.user + times.system,
                                 process.memory_info().rss / 1_000_000))
    return found


def cpu_s(workers: Sequence[LabProcess]) -> float:
    """Seconds of processor that all processes of these workers have used."""
    return sum(process.cpu_s for worker in workers for process in look_at(worker))


def now_s() -> float:
    """The clock of all measurements."""
    return time.monotonic()

"""A fault is a package: how it bites, what shows that it bit, and how it is mended.

The stage plays the schedule of a scenario: it waits for each entry's event, lets the fault bite,
and records that it began, bit and ended. Checkers and plots look at these records alone, so a new
fault needs no edit there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dtq_conformance.bench import Bench, Worker
from dtq_conformance.history import Effect, Fault
from dtq_conformance.waiting import WaitedTooLong, let_pass, wait_for

from dtq_chaos.schedule import Entry, When
from dtq_chaos.toxiproxy import Link, Toxiproxy

EVENT_LIMIT_S = 15.0
"""How long an event of the schedule is waited for; one that does not come leaves no mark."""

BETWEEN_SUBMISSIONS_MS = 100


@dataclass(frozen=True)
class Bite:
    """What a fault did: to which worker processes, and what was seen from outside."""

    pids: list[int] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault. `begin` returns when its effect was seen; `end` mends it, if it lasts."""

    name: str
    effect: Effect
    begin: Callable[[Stage, Entry], Bite]
    end: Callable[[Stage, Bite], None] | None = None


class Stage:
    """A bench under faults, with links through Toxiproxy for those who need them.

    `target` is the name by which a process of its own can load the target.
    """

    def __init__(self, bench: Bench, kinds: Mapping[str, FaultKind], *, target: str,
                 with_faults: bool) -> None:
        self.bench = bench
        self.target = target
        self.with_faults = with_faults
        self._kinds = kinds
        self._began_ns = time.monotonic_ns()
        self._links: dict[str, Link] = {}
        self._lasting: list[tuple[int, Entry, Bite]] = []
        self._toxiproxy: Toxiproxy | None = None

    # ------------------------------------------------------------ links

    def link(self, name: str) -> Link:
        """The link of this name to the broker, through Toxiproxy; made when first asked for.

        It lives as long as the lab: workers need their link until they have stopped.
        """
        if self._toxiproxy is None:
            self._toxiproxy = Toxiproxy(self.bench.lab)
        if name not in self._links:
            place = urlsplit(self.bench.lab.broker.url).netloc.rpartition("@")[2]
            self._links[name] = self._toxiproxy.link(name, place)
        return self._links[name]

    def url_of(self, name: str) -> str:
        """The broker's URL through a link."""
        return self.link(name).url(self.bench.lab.broker.url)

    # ------------------------------------------------------------ playing a schedule

    def play(self, entries: list[Entry]) -> None:
        """Let the faults strike, one after the other; none without faults."""
        if not self.with_faults:
            return
        for number, entry in enumerate(entries):
            if not self._comes(entry.when):
                continue
            bite = self.begin(number, entry)
            if self._kinds[entry.fault].end is None:
                self._record(number, entry, "end", bite)
            elif entry.until is None:
                self._lasting.append((number, entry, bite))
            else:
                self._comes(entry.until)
                self.end(number, entry, bite)

    def heal(self) -> None:
        """Mend all that still lasts."""
        while self._lasting:
            self.end(*self._lasting.pop())

    def begin(self, number: int, entry: Entry) -> Bite:
        """Let a fault bite, and record it."""
        began_ns = time.monotonic_ns()
        bite = self._kinds[entry.fault].begin(self, entry)
        self._record(number, entry, "begin", bite, at_ns=began_ns)
        self._record(number, entry, "bit", bite)
        return bite

    def end(self, number: int, entry: Entry, bite: Bite) -> None:
        """Mend a fault, and record it."""
        end = self._kinds[entry.fault].end
        if end is not None:
            end(self, bite)
        self._record(number, entry, "end", bite)

    def _record(self, number: int, entry: Entry, phase: Any, bite: Bite, *,
                at_ns: int | None = None) -> None:
        self.bench.records.append(Fault(
            at_ns=time.monotonic_ns() if at_ns is None else at_ns, fault=entry.fault,
            number=number, phase=phase, effect=self._kinds[entry.fault].effect, pids=bite.pids,
            detail=bite.detail))

    def await_quietly(self, condition: Callable[[], bool], *, reason: str) -> bool:
        """Wait for a condition that a broken engine may never meet; False if it does not."""
        try:
            return wait_for(condition, reason=reason, limit_s=EVENT_LIMIT_S)
        except WaitedTooLong:
            return False

    def await_grown_server(self) -> None:
        """Wait until our server is older than a lease, which it tells in whole seconds: before that
        no lease counts as ended (WORK-19), and what a fault is to bring about may come after it."""
        bench = self.bench
        if bench.lab.broker.process is None:
            return
        with bench.lab.broker.connect() as client:
            self.await_quietly(
                lambda: (client.info("server")["uptime_in_seconds"] - 1) * 1000
                >= bench.timing.lease_ms, reason="the server to be older than a lease")

    def submit_for(self, span_ms: int, *, label: str) -> None:
        """Submit one task after the other for so long, by a client that gives up after a second: it
        sends again for no longer than records are kept (IDEM-11)."""
        bench = self.bench
        until_ns = time.monotonic_ns() + span_ms * 1_000_000
        url = bench.lab.broker.url
        with contextlib.closing(bench.open_target(url, DTQ_TASK_RETENTION_S="1")) as impatient:
            bench.submit({"sleep": 20}, label=label, through=impatient)
            while time.monotonic_ns() < until_ns:
                let_pass(BETWEEN_SUBMISSIONS_MS)
                bench.submit({"sleep": 20}, label=label, through=impatient)

    def _comes(self, when: When) -> bool:
        return self.await_quietly(lambda: self._has_come(when), reason=str(when))

    def _has_come(self, when: When) -> bool:
        bench = self.bench
        match when.event:
            case "at_once":
                return True
            case "start" | "end":
                return len(bench.witnessed(when.event, when.label)) >= when.count
            case "in_hand":
                return len(bench.keyspace.in_hand(when.worker or "")) >= when.count
            case "exit":
                return not self.worker(when.worker or "").process.alive
            case "forgotten":
                return bench.keyspace.last_heartbeat_ms(when.worker or "") is None
            case "elapsed":
                return time.monotonic_ns() >= self._began_ns + when.count * 1_000_000

    # ------------------------------------------------------------ victims

    @contextlib.contextmanager
    def standing_by(self, count: int, concurrency: int) -> Iterator[None]:
        """Start workers that are ready and stand still within the block (SIGSTOP, with nothing in
        hand), so that what is submitted in it is somebody else's."""
        workers = self.bench.start_workers(count, concurrency)
        for worker in workers:
            self.bench.await_ready(worker)
            worker.process.stop()
        yield
        for worker in workers:
            worker.process.resume()

    def worker(self, name: str) -> Worker:
        """The worker of this name."""
        return next(worker for worker in self.bench.workers if worker.name == name)

    def victim(self, entry: Entry) -> Worker:
        """The worker that an entry means: the one it names, or the one that started the
        newest execution of the tasks with this label (`holder_of`)."""
        if "worker" in entry.parameters:
            return self.worker(entry.parameters["worker"])
        newest = self.bench.witnessed("start", entry.parameters["holder_of"])[-1]
        return self.bench.worker_of(newest.pid)

    def hands(self, worker: Worker) -> dict[str, Any]:
        """What a stopped worker has in hand: as the broker shows it, of a target with the
        contract's schema, and what it has started and not ended, as the witness shows it."""
        pids = worker.process.pids()
        lines = [line for line in self.bench.lab.witness_lines() if line.pid in pids]
        begun = [line.task_id for line in lines if line.event == "start"]
        for line in lines:
            if line.event == "end" and line.task_id in begun:
                begun.remove(line.task_id)
        started = {line.task_id for line in lines}
        hands = {"worker": worker.name, "concurrency": worker.concurrency, "open": begun}
        if not self.bench.has_schema:
            return hands
        in_hand = self.bench.keyspace.in_hand(worker.worker_id)
        return {**hands, "in_hand": in_hand,
                "unstarted": [task for task in in_hand if task not in started]}

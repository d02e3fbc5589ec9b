"""Plays a storm: keeps a worker in each place, asks what is to be asked, lets faults strike.

Comes in: a stage and a schedule whose every part has its millisecond. Goes out: the records of the
bench. One thread strikes, mends, asks and keeps the workers; some others submit, since a
submission whose reply is lost waits for it. What comes late is done at once, in the planned order.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
from dtq_conformance.bench import Bench, Worker
from dtq_conformance.target import TERMINAL, ShowsReadiness, Target

from dtq_chaos.fault import Bite, Stage
from dtq_chaos.schedule import Ask, Entry, Schedule

PLACES, CONCURRENCY = 3, 4
CLIENT = "client"
"""The link that what is submitted goes through."""
ASKERS = 4
VICTIM_LIMIT_MS, AGAIN_MS = 30_000, 20
"""How long a fault waits for a worker that is ready in its place, and how often it looks."""


def set_up(stage: Stage) -> None:
    """Make the first link, so that a missing server is noticed before anything is asked."""
    stage.link(CLIENT)


def play(stage: Stage, schedule: Schedule) -> None:
    """Play a storm to its end; all that lasted is mended then."""
    player = _Player(stage, schedule)
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="asks") as pool:
        asking = [pool.submit(player.ask_all, number) for number in range(ASKERS)]
        try:
            player.strike_all()
        except BaseException:
            player.given_up.set()
            raise
        for each in asking:
            each.result()


def _submit(bench: Bench, client: Target, ask: Ask) -> None:
    fields = dict(ask.fields)
    bench.submit(*fields.pop("steps"), task_id=ask.task_id, through=client, **fields)


def _requeue(bench: Bench, task_id: str) -> None:
    """Requeue a task that is seen to be over. One that ended between the look and the requeue would
    leave a life whose end nobody saw."""
    view = bench.look(task_id)
    if view is not None and view.status in TERMINAL:
        bench.requeue(task_id)


ASKS: dict[str, Callable[[Bench, str], object]] = {
    "look": Bench.look, "cancel": Bench.cancel, "requeue": _requeue,
    "discard": Bench.discard}
"""What is asked about one task, over a link of its own that nothing befalls. A new one has its word
in `schedule.Ask`, its share in `storm`, and its function here."""


class _Player:
    """One storm under way."""

    def __init__(self, stage: Stage, schedule: Schedule) -> None:
        self.given_up = threading.Event()
        self._stage, self._bench = stage, stage.bench
        self._submissions = [ask for ask in schedule.asks if ask.ask == "submit"]
        self._places: dict[int, Worker] = {}
        self._befallen: set[int | str | None] = set()  # places, and links of nobody's
        self._numbers = 0
        self._to_do: list[tuple[int, int, Callable[[], None]]] = []
        for number, entry in enumerate(schedule.entries if stage.with_faults else ()):
            self._at(entry.when.count, partial(self._strike, number, entry))
        for ask in schedule.asks:
            if ask.ask == "pause":
                self._at(ask.at_ms, partial(self._pause, ask.fields["lasts_ms"]))
            elif ask.ask != "submit":
                self._at(ask.at_ms, partial(self._ask, ask))
        for place in range(1, PLACES + 1):
            self._start(place)
        for worker in self._places.values():
            self._bench.await_ready(worker)
        self._began_ns = time.monotonic_ns()

    # ------------------------------------------------------------ asking

    def ask_all(self, asker: int) -> None:
        """Submit every fourth task in its time, with a client of this thread's own."""
        client = self._bench.open_target(self._stage.url_of(CLIENT))
        with contextlib.closing(client):
            for ask in self._submissions[asker::ASKERS]:
                if self.given_up.wait(max(0, ask.at_ms - self._elapsed_ms()) / 1000):
                    return
                _submit(self._bench, client, ask)

    def _elapsed_ms(self) -> int:
        return (time.monotonic_ns() - self._began_ns) // 1_000_000

    # ------------------------------------------------------------ striking

    def strike_all(self) -> None:
        """Do everything in its time, until all is mended and all has been asked."""
        last_ms = max([at_ms for at_ms, _, _ in self._to_do]
                      + [ask.at_ms for ask in self._submissions], default=0)
        while self._to_do or self._elapsed_ms() < last_ms:
            self._keep()
            if self._to_do and self._to_do[0][0] <= self._elapsed_ms():
                heapq.heappop(self._to_do)[2]()
            else:
                self.given_up.wait(0.005)

    def _at(self, at_ms: int, what: Callable[[], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._to_do, (at_ms, self._numbers, what))

    def _strike(self, number: int, entry: Entry) -> None:
        """Let a fault bite; it lasts as long as planned from then on. One that finds no victim yet,
        or its place befallen by another one, comes later; after a while it does not come at all.
        """
        place = entry.parameters.get("place")
        where = place or entry.parameters.get("link")
        if where in self._befallen or (place is not None and not self._is_ready(place)):
            if self._elapsed_ms() < entry.when.count + VICTIM_LIMIT_MS:
                self._at(self._elapsed_ms() + AGAIN_MS, partial(self._strike, number, entry))
            return
        struck = msgspec.structs.replace(entry, parameters=self._parameters(entry))
        bite = self._stage.begin(number, struck)
        if entry.fault == "terminate_worker":
            self._start(entry.parameters["place"])
        if entry.until is None:
            self._stage.end(number, struck, bite)
            return
        self._befallen.add(where)
        self._at(self._elapsed_ms() + entry.until.count - entry.when.count,
                 partial(self._mend, number, struck, bite, where))

    def _mend(self, number: int, struck: Entry, bite: Bite, where: int | str | None) -> None:
        self._stage.end(number, struck, bite)
        self._befallen.discard(where)

    def _parameters(self, entry: Entry) -> dict[str, Any]:
        """Those of the fault's module: a place stands for its worker of the moment and its link."""
        parameters = dict(entry.parameters)
        if "place" not in parameters:
            return parameters
        name = self._places[parameters.pop("place")].name
        return {**parameters, "worker": name, "link": name}

    def _ask(self, ask: Ask) -> None:
        """Ask about a task, if it has been submitted."""
        if ask.task_id in self._bench.submissions:
            ASKS[ask.ask](self._bench, ask.task_id)

    def _pause(self, lasts_ms: int) -> None:
        """Pause the queue; it is resumed in this storm, whatever else becomes of it."""
        self._bench.pause()
        self._at(self._elapsed_ms() + lasts_ms, self._bench.resume)

    # ------------------------------------------------------------ places

    def _start(self, place: int) -> None:
        """Start a worker behind a link of its own, which has its name."""
        name = f"worker-{len(self._bench.workers) + 1}"
        self._places[place] = self._bench.start_worker(
            CONCURRENCY, broker_url=self._stage.url_of(name))

    def _keep(self) -> None:
        """Start a worker wherever one has ended."""
        for place, worker in self._places.items():
            if not worker.process.alive:
                self._start(place)

    def _is_ready(self, place: int) -> bool:
        """Whether the place has a worker that lives and has started up."""
        worker, target = self._places[place], self._bench.target
        return worker.process.alive and (
            not isinstance(target, ShowsReadiness) or target.is_ready(worker.worker_id))

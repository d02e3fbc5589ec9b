"""A whole run of the benchmark: what is measured of whom, in which order.

Comes in: a plan and a stand. Goes out: a `Report`. The peers take turns within a round, a
different one being the first in each, so that what befalls the machine befalls all of them. What
takes long (deep queues, recovery) and what does not vary (counting commands) comes once, after the
rounds. A peer that breaks is told, and the others go on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dtq_conformance.waiting import WaitedTooLong

from dtq_load.bench import counting, ingest, limits, measures, recovery, reference_loop
from dtq_load.bench.drain import Command, drain
from dtq_load.bench.figures import Figure, figure
from dtq_load.bench.measures import Values
from dtq_load.bench.peer import NotInstalled, Peer, Size
from dtq_load.bench.recovery import Recovery
from dtq_load.bench.results import PeerReport
from dtq_load.bench.stand import BenchError, Stand

COUNTED_TASKS = 1000
"""Tasks that are drained while every command is watched."""


@dataclass(frozen=True)
class Plan:
    """What is measured. `recovery_limit_s` of 0 and `http` False leave these out."""

    peers: Sequence[Peer]
    rounds: int
    tasks: int
    latency_tasks: int
    depths: Sequence[int]
    take: int
    recovery_limit_s: float
    http: bool


@dataclass
class Row:
    """What is known of one peer so far."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    recovery: Recovery | None = None
    by_command: dict[str, Command] = field(default_factory=dict)

    def add(self, found: Values) -> None:
        for name, value in found.items():
            self.values[name].append(value)


@dataclass(frozen=True)
class Step:
    """One thing to measure. `about` is a peer's name, or what else it is about."""

    about: str
    words: str
    do: Callable[[], None]


class Runner:
    """Carries out a plan on a stand."""

    def __init__(self, stand: Stand, plan: Plan) -> None:
        self._stand, self._plan = stand, plan
        self.rows = {peer.name: Row() for peer in plan.peers}
        self.others: dict[str, list[float]] = defaultdict(list)
        self.limits: dict[str, list[float]] = defaultdict(list)
        self.broken: dict[str, str] = {}

    def steps(self) -> Iterator[Step]:
        """Everything, in its order."""
        plan, peers = self._plan, list(self._plan.peers)
        for number in range(plan.rounds):
            words = f"round {number + 1} of {plan.rounds}"
            yield Step("reference loop", words, self._loop)
            yield Step("limits", words, self._limits)
            first = number % len(peers) if peers else 0
            for peer in peers[first:] + peers[:first]:
                yield from self._round(peer, words)
            if plan.http:
                yield Step("http", words, self._http)
        for peer in peers:
            yield from self._once(peer)

    def carry_out(self, step: Step) -> None:
        """Measure it; what breaks is left out from then on, and is in `broken`, with the reason."""
        if step.about in self.broken:
            return
        try:
            step.do()
        except (BenchError, WaitedTooLong, OSError) as error:
            self.broken[step.about] = str(error)

    def figures(self, name: str) -> dict[str, Figure]:
        """The figures of a peer."""
        return {what: figure(values) for what, values in self.rows[name].values.items()}

    def _round(self, peer: Peer, words: str) -> Iterator[Step]:
        stand, plan, row = self._stand, self._plan, self.rows[peer.name]

        def drains() -> None:
            found, one = measures.drains(stand, peer, tasks=plan.tasks)
            row.add(found)
            row.by_command = one.by_command

        yield Step(peer.name, f"{words}: drains", drains)
        yield Step(peer.name, f"{words}: submissions",
                   lambda: row.add(measures.submissions(stand, peer, tasks=plan.tasks)))
        yield Step(peer.name, f"{words}: latency",
                   lambda: row.add(measures.latency(stand, peer, tasks=plan.latency_tasks)))

    def _once(self, peer: Peer) -> Iterator[Step]:
        stand, plan, row = self._stand, self._plan, self.rows[peer.name]

        def count() -> None:
            client, script = counting.count_commands(stand, peer, tasks=COUNTED_TASKS)
            row.add({"client_commands_per_task": client, "script_commands_per_task": script})

        def at(depth: int) -> Callable[[], None]:
            def cost() -> None:
                for found in measures.cost_at_depth(stand, peer, depth=depth, take=plan.take,
                                                    times=plan.rounds):
                    row.add(found)
            return cost

        def recover() -> None:
            row.recovery = recovery.recover(stand, peer, limit_s=plan.recovery_limit_s)

        yield Step(peer.name, "counting commands", count)
        for depth in plan.depths:
            yield Step(peer.name, f"with {depth:,} queued", at(depth))
        if plan.recovery_limit_s:
            yield Step(peer.name, "recovery", recover)

    def _loop(self) -> None:
        self.others["loop"].append(reference_loop.measure(self._stand, tasks=self._plan.tasks))

    def _limits(self) -> None:
        for name, value in limits.measure(self._stand, tasks=self._plan.tasks,
                                          calls=self._plan.latency_tasks).items():
            self.limits[name].append(value)

    def _http(self) -> None:
        for name, value in ingest.measure(self._stand, tasks=self._plan.tasks).items():
            self.others[name].append(value)


def installed(peers: Sequence[Peer]) -> tuple[dict[str, str], dict[str, str]]:
    """The version of each peer that can run here, and why the others cannot."""
    versions, missing = {}, {}
    for peer in peers:
        try:
            versions[peer.name] = peer.version()
        except NotInstalled as error:
            missing[peer.name] = str(error)
    return versions, missing


def row_of(peer: Peer, version: str, missing: str, runner: Runner) -> PeerReport:
    """A peer's row of the report."""
    row = runner.rows.get(peer.name, Row())
    return PeerReport(
        name=peer.name, language=peer.language, version=version, size=str(peer.size),
        settings=peer.settings, guarantee=peer.guarantee,
        not_run=missing,
        figures=runner.figures(peer.name) if peer.name in runner.rows else {},
        recovery=row.recovery, by_command=row.by_command)


def http_figures(runner: Runner) -> dict[str, Figure]:
    """What was measured over HTTP."""
    return {name: figure(values) for name, values in runner.others.items() if name != "loop"}


def search(stand: Stand, peer: Peer, size: Size, *, tasks: int) -> float:
    """Tasks per second of one worker of this size."""
    stand.fill(peer, tasks)
    return drain(stand, peer, size=size, workers=1, submitted=tasks, take=tasks).per_s

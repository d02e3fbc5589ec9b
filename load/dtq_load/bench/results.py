"""What the benchmark found, as it is saved: figures, guarantees, ratios and the machine.

Comes in: the figures of each peer. Goes out: a `Report`, which is the JSON file; the table and the
plot are made from it and from nothing else.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil

from dtq_load.bench.drain import Command
from dtq_load.bench.figures import Figure, depth_figure
from dtq_load.bench.recovery import Recovery

OURS = "dtq"
SHALLOW, DEEP = 1_000, 1_000_000


class PeerReport(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's row. `not_run` is why there are no figures, if there are none; `by_command` is what
    the server did for a task while one worker drained."""

    name: str
    language: str
    version: str
    size: str
    settings: str
    guarantee: str
    not_run: str = ""
    figures: dict[str, Figure] = {}
    recovery: Recovery | None = None
    by_command: dict[str, Command] = {}


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where it was measured."""

    cpus: int
    cpu: str
    memory_gb: float
    system: str
    python: str
    node: str
    load_before: float
    load_after: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. `ratios` has a null where something was not measured, and `why_null` says what;
    `reference_loop_per_s` is the plain pipeline on the same server, `limits` what a task's commands
    and calls take with nothing around them, `http` what one API process took, beside its server
    with an empty handler. `broken` is why something was not measured further: a peer by its name,
    http, or reference loop."""

    format: int = 1
    begun: str
    machine: Machine
    broker: str
    persistence: str
    rounds: int
    tasks: int
    peers: list[PeerReport]
    reference_loop_per_s: Figure | None = None
    limits: dict[str, Figure] = {}
    http: dict[str, Figure] = {}
    ratios: dict[str, float | None] = {}
    why_null: dict[str, str] = {}
    broken: dict[str, str] = {}


def ratios(report: Report) -> tuple[dict[str, float | None], dict[str, str]]:
    """This engine beside its peers, by medians, and why where there is no ratio."""
    rows = {peer.name: peer for peer in report.peers}
    pythons = [name for name, peer in rows.items() if name != OURS and peer.language == "Python"]
    others = [name for name in rows if name != OURS]
    made = _Ratios(rows)
    made.add("one_worker_vs_bullmq", "one_worker_per_s", ["bullmq"], best=max)
    made.add("one_worker_vs_best_python", "one_worker_per_s", pythons, best=max)
    made.add("two_workers_vs_bullmq", "two_workers_per_s", ["bullmq"], best=max)
    made.add("idle_p50_vs_best_peer", "idle_p50_ms", others, best=min)
    for name in ("round_trips_per_task", "rss_mb", "rss_leader_mb"):
        made.put(name, made.ours(name), f"{name} of {OURS} was not measured")
    shallow, deep = (made.ours(depth_figure(depth)) for depth in (SHALLOW, DEEP))
    made.put("cost_1m_vs_1k", deep / shallow if deep and shallow else None,
             f"the cost with {SHALLOW:,} and {DEEP:,} queued was not measured; see --depths")
    loop, one = report.reference_loop_per_s, made.ours("one_worker_per_s")
    made.put("one_worker_vs_reference_loop", one / loop.median if one and loop else None,
             "one worker or the reference loop was not measured")
    server, idle = made.ours("server_cpu_s_per_10k"), made.ours("idle_p50_ms")
    for what, unit, ours, of in (("commands", "us", server and 100 * server, "server_cpu"),
                                 ("calls", "ms", idle, "idle_p50")):
        for kind in ("bare", "own"):
            limit = f"{kind}_{what}_{unit}"
            least = report.limits.get(limit)
            made.put(f"{of}_vs_{kind}_{what}", ours / least.median if ours and least else None,
                     f"{OURS} or {limit} was not measured")
    for name in ("one_by_one", "batch"):
        full, empty = (report.http.get(f"{kind}_{name}_per_s") for kind in ("ingest", "empty"))
        made.put(f"http_{name}_vs_empty", full.median / empty.median if full and empty else None,
                 "HTTP ingest was not measured")
    return made.values, made.reasons


class _Ratios:
    """Collects ratios, and reasons for those that there are not."""

    def __init__(self, rows: Mapping[str, PeerReport]) -> None:
        self._rows = rows
        self.values: dict[str, float | None] = {}
        self.reasons: dict[str, str] = {}

    def ours(self, figure: str) -> float | None:
        return self._of(OURS, figure)

    def put(self, name: str, value: float | None, otherwise: str) -> None:
        self.values[name] = value
        if value is None:
            self.reasons[name] = otherwise

    def add(self, name: str, figure: str, peers: list[str], *, best: Any) -> None:
        """Ours by the best of these peers', with the higher or the lower figure for best."""
        known = [value for peer in peers if (value := self._of(peer, figure)) is not None]
        ours = self.ours(figure)
        lacking = OURS if ours is None else " and ".join(peers) or "any peer"
        self.put(name, ours / best(known) if ours is not None and known else None,
                 f"{figure} of {lacking} was not measured")

    def _of(self, peer: str, figure: str) -> float | None:
        row = self._rows.get(peer)
        found = row and row.figures.get(figure)
        return found.median if found else None


def machine(*, load_before: float) -> Machine:
    """This machine, now that the run is over."""
    return Machine(
        cpus=os.cpu_count() or 0, cpu=_cpu(), system=platform.platform(terse=True),
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1), python=platform.python_version(),
        node=_node(), load_before=round(load_before, 2), load_after=round(load_now(), 2))


def load_now() -> float:
    """How many processes wanted to run, on average over the last minute."""
    return psutil.getloadavg()[0]


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines
                 if line.startswith("model name")), platform.processor())


def _node() -> str:
    if not (node := shutil.which("node")):
        return ""
    return subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20,
                          check=False).stdout.strip().removeprefix("v")

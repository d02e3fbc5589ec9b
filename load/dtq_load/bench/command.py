"""The subcommand `bench`: this engine beside its peers, as a table, a plot and JSON.

Comes in: whom to measure, and how long. Goes out: the table on the terminal, and a folder with
bench.json, bench.md, bench.png (where the extra `reports` is installed) and the processes' logs.
It exits with 0 when everything was measured that could be, with 4 for a bad question and, under
CI=true, for a peer that is not installed, with 5 if a peer broke. It asserts no speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from dtq_conformance import terminal
from dtq_conformance.broker import PERSISTENCE, BrokerError
from dtq_conformance.exits import CONFORMS, HARNESS, INPUT, InputError, in_ci
from dtq_conformance.lab import Lab, LabError, interruptible
from dtq_conformance.run import default_out
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dtq_load.bench import results, table
from dtq_load.bench.figures import figure
from dtq_load.bench.peer import Peer
from dtq_load.bench.peers import PEERS
from dtq_load.bench.results import OURS, Report
from dtq_load.bench.run import Plan, Runner, http_figures, installed, row_of, search
from dtq_load.bench.stand import BenchError, Stand

WIDTH = 200
"""Columns where there is no terminal to ask: six peers beside each other."""
FULL_DEPTHS, QUICK_DEPTHS = "1000,10000,100000,1000000", "1000,10000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-load bench`."""
    add = parser.add_argument
    add("--only", metavar="NAMES", help=f"of {', '.join(PEERS)} only these, with commas")
    add("--quick", action="store_true", help="within a minute: this engine alone unless --only "
        "says otherwise, two rounds, no deep queues, no recovery")
    add("--search", action="store_true", help="instead: each peer's sizes of a worker, to find the "
        "best")
    add("--rounds", type=_count, metavar="N", help="rounds in turn (default 5; --quick 2)")
    add("--tasks", type=_count, metavar="N",
        help="tasks of a drain (default 20000; --quick 5000)")
    add("--latency-tasks", type=_count, metavar="N",
        help="tasks of a round whose latency is taken (default 300; --quick 100)")
    add("--depths", metavar="LIST", help="cost of a task with so many queued, with commas; an "
        f"empty word for none (default {FULL_DEPTHS}; --quick {QUICK_DEPTHS})")
    add("--take", type=_count, default=5000, metavar="N",
        help="tasks taken from a deep queue (default %(default)s)")
    add("--recovery-limit", type=float, metavar="S", help="seconds after which a killed worker's "
        "tasks count as not run again; 0 leaves recovery out (default 90; --quick 0)")
    add("--without-http", action="store_true", help="leave out HTTP ingest")
    add("--broker", default="embedded", metavar="BROKER",
        help="embedded, path, or docker:IMAGE (default embedded): a server of our own")
    add("--persistence", choices=PERSISTENCE, default="none", help="none, or an append-only file "
        "synced so; the same for all (default %(default)s)")
    add("--out", type=Path, metavar="FOLDER", help="where the files are written (default: a new "
        f"folder under {default_out()})")
    add("--json", metavar="FILE", help="write the JSON here too; - for the standard output, "
        "instead of the table")
    add("--markdown", action="store_true", help="print the table as Markdown")


def execute(arguments: argparse.Namespace) -> int:
    """Measure, and return an exit code."""
    if arguments.broker.startswith(("redis://", "rediss://")):
        raise InputError("The benchmark empties its server and counts what it does, so it needs "
                         "one of its own: --broker embedded, path or docker:IMAGE.")
    peers = _chosen(arguments)
    folder = arguments.out or default_out() / time.strftime("bench-%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    with interruptible():
        try:
            with Lab(folder / "processes", broker=arguments.broker,
                     persistence=arguments.persistence) as lab:
                if arguments.search:
                    return _search(Stand(lab), peers, arguments)
                report = _measure(lab, peers, arguments)
        except BrokerError as error:
            raise InputError(str(error)) from error
        except (BenchError, LabError) as error:
            print(f"The benchmark could not be carried out: {error}", file=sys.stderr)
            return HARNESS
    _write(report, folder, arguments)
    return _code(report)


def plan_of(arguments: argparse.Namespace, peers: list[Peer]) -> Plan:
    """What these arguments ask for."""
    quick = arguments.quick

    def given(name: str, full: float, short: float) -> float:
        value = getattr(arguments, name)
        return float(value if value is not None else short if quick else full)

    depths = arguments.depths
    if depths is None:
        depths = QUICK_DEPTHS if quick else FULL_DEPTHS
    try:
        known = [int(word) for word in depths.split(",") if word.strip()]
    except ValueError:
        raise InputError(f"--depths is {depths!r}; numbers with commas are expected.") from None
    return Plan(peers=peers, rounds=int(given("rounds", 5, 2)),
                tasks=int(given("tasks", 20_000, 5_000)),
                latency_tasks=int(given("latency_tasks", 300, 100)), depths=known,
                take=arguments.take, recovery_limit_s=given("recovery_limit", 90, 0),
                http=not arguments.without_http and any(peer.name == OURS for peer in peers))


def _chosen(arguments: argparse.Namespace) -> list[Peer]:
    """The peers that were asked for, in the order of the list."""
    asked = [name.strip() for name in (arguments.only or "").split(",") if name.strip()]
    if unknown := [name for name in asked if name not in PEERS]:
        raise InputError(f"There is no peer {unknown[0]!r}. Known are {', '.join(PEERS)}.")
    if not asked and arguments.quick:
        asked = [OURS]
    return [peer for name, peer in PEERS.items() if not asked or name in asked]


def _measure(lab: Lab, peers: list[Peer], arguments: argparse.Namespace) -> Report:
    begun, load = time.strftime("%Y-%m-%dT%H:%M:%S%z"), results.load_now()
    versions, missing = installed(peers)
    stand = Stand(lab)
    plan = plan_of(arguments, [peer for peer in peers if peer.name in versions])
    runner = Runner(stand, plan)
    steps = list(runner.steps())
    with _progress() as progress:
        task = progress.add_task("", total=len(steps))
        for step in steps:
            progress.update(task, description=f"{step.about}: {step.words}")
            runner.carry_out(step)
            progress.advance(task)
    loop = runner.others.get("loop")
    report = Report(
        begun=begun, machine=results.machine(load_before=load), broker=lab.broker.description,
        persistence=arguments.persistence, rounds=plan.rounds, tasks=plan.tasks,
        peers=[row_of(peer, versions.get(peer.name, ""), missing.get(peer.name, ""), runner)
               for peer in peers],
        reference_loop_per_s=figure(loop) if loop else None, http=http_figures(runner),
        limits={name: figure(values) for name, values in runner.limits.items()},
        broken=runner.broken)
    values, reasons = results.ratios(report)
    return msgspec.structs.replace(report, ratios=values, why_null=reasons)


def _search(stand: Stand, peers: list[Peer], arguments: argparse.Namespace) -> int:
    """Print the speed of one worker of each size, and which was the best."""
    versions, missing = installed(peers)
    tasks, rounds = arguments.tasks or 5_000, arguments.rounds or 3
    sweeps = [(peer, size) for peer in peers if peer.name in versions for size in peer.sweep]
    found: dict[tuple[str, str], list[float]] = {}
    with _progress() as progress:
        task = progress.add_task("", total=rounds * len(sweeps))
        for _ in range(rounds):
            for peer, size in sweeps:
                progress.update(task, description=f"{peer.name}: {size}")
                found.setdefault((peer.name, str(size)), []).append(
                    search(stand, peer, size, tasks=tasks))
                progress.advance(task)
    shown = Table(title="One worker by its size, tasks/s", title_justify="left")
    for column in ("peer", "processes × slots", "median and range", ""):
        shown.add_column(column)
    for (name, words), values in found.items():
        best = max(figure(of).median for (other, _), of in found.items() if other == name)
        one = figure(values)
        shown.add_row(name, words, table.cell(one), "best" if one.median == best else "")
    console = terminal.console()
    console.print(shown)
    for name, reason in missing.items():
        console.print(f"{name}: not run: {reason}", highlight=False)
    return INPUT if missing and in_ci() else CONFORMS


def _write(report: Report, folder: Path, arguments: argparse.Namespace) -> None:
    """Write the files, and print what was asked for."""
    text = msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"
    saved = folder / "bench.json"
    saved.write_text(text)
    (folder / "bench.md").write_text(table.markdown(report))
    if arguments.json == "-":
        sys.stdout.write(text)
        return
    if arguments.json:
        Path(arguments.json).write_text(text)
    if arguments.markdown:
        sys.stdout.write(table.markdown(report))
        return
    console = terminal.console(width=WIDTH)
    table.show(report, console)
    console.print(_draw(saved), highlight=False, soft_wrap=True)
    console.print(f"Files: {folder}", highlight=False, soft_wrap=True)


def _draw(saved: Path) -> str:
    """Have the plot drawn, by the reports room's command; returns where it is."""
    drawn = subprocess.run([sys.executable, "-P", "-m", "dtq_reports", str(saved)], check=False,
                           capture_output=True, text=True)
    if drawn.returncode:
        return f"Plot: none was drawn; dtq-report {saved} says why."
    return f"Plot: {drawn.stdout.strip().splitlines()[-1]}"


def _code(report: Report) -> int:
    lacking = any(peer.not_run for peer in report.peers)
    return HARNESS if report.broken else INPUT if lacking and in_ci() else CONFORMS


def _progress() -> Progress:
    return Progress(TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn(),
                    console=Console(stderr=True))


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1")
    return value

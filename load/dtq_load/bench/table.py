"""The report as a table: for a terminal, and as Markdown for a document.

Comes in: a `Report`. Goes out: one column for each peer, one row for each figure, with the range
of the rounds; each peer's guarantee and settings stand beside its speed, always.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from dtq_load.bench.figures import FIGURES, Figure, kind_of
from dtq_load.bench.recovery import Recovery
from dtq_load.bench.results import PeerReport, Report

HTTP_TITLES = {
    "ingest_one_by_one_per_s": "HTTP, one by one",
    "empty_one_by_one_per_s": "the same server, empty handler",
    "ingest_batch_per_s": "HTTP, batches of 100",
    "empty_batch_per_s": "the same server, empty handler, batches of 100",
    "client_limit_per_s": "the client's own limit, requests",
}

LIMIT_TITLES = {
    "bare_commands_us": "a task's least commands in scripts, µs of the server's processor",
    "own_commands_us": "this engine's, on its own records and with no exception, µs",
    "bare_calls_ms": "the five calls of an idle task, with nothing in them, p50, ms",
    "own_calls_ms": "this engine's, by a worker that does nothing else, p50, ms",
}


def number(value: float) -> str:
    """Three digits that count, and no more precision than that."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(figure: Figure | None) -> str:
    """A median with its range, where there is more than one value."""
    if figure is None:
        return "–"
    if len(figure.values) == 1:
        return number(figure.median)
    return f"{number(figure.median)} ({number(figure.low)}–{number(figure.high)})"


def recovered(recovery: Recovery | None) -> str:
    """How long it took, or that it took too long."""
    if recovery is None:
        return "–"
    if recovery.seconds is not None:
        return number(recovery.seconds)
    return f"not within {recovery.limit_s:g} s: {recovery.missing} of {recovery.held}"


def names(report: Report) -> list[str]:
    """The figures that were measured of any peer, in the order of the list of figures."""
    found = {name for peer in report.peers for name in peer.figures}
    depths = sorted(found - FIGURES.keys(), key=lambda name: int(name.rsplit("_", 1)[1]))
    return [name for name in FIGURES if name in found] + depths


def rows(report: Report) -> Iterator[list[str]]:
    """The lines of the table: what it is, then a cell for each peer that ran."""
    ran = peers_that_ran(report)
    for name in names(report):
        kind = kind_of(name)
        title = f"{kind.title}, {kind.unit}" if kind.unit else kind.title
        yield [title, *(cell(peer.figures.get(name)) for peer in ran)]
    if any(peer.recovery for peer in ran):
        yield ["its tasks run again after SIGKILL, s", *(recovered(peer.recovery) for peer in ran)]


def peers_that_ran(report: Report) -> list[PeerReport]:
    """Those of which there is anything to show."""
    return [peer for peer in report.peers if peer.figures]


def heads(report: Report) -> list[str]:
    return [f"{peer.name} {peer.version}" for peer in peers_that_ran(report)]


def http_rows(report: Report) -> Iterator[list[str]]:
    for name, found in report.http.items():
        yield [f"{HTTP_TITLES.get(name, name)}, per second", cell(found)]


def limit_rows(report: Report) -> Iterator[list[str]]:
    for name, found in report.limits.items():
        yield [LIMIT_TITLES.get(name, name), cell(found)]


def facts(report: Report) -> list[str]:
    """How and where it was measured, a sentence each."""
    machine, loop = report.machine, report.reference_loop_per_s
    said = [f"Rounds in turn: {report.rounds}, of {report.tasks:,} tasks each; medians, and in "
            "parentheses the range.",
            f"Broker: {report.broker}, persistence {report.persistence}; one server for all.",
            f"Machine: {machine.cpus} × {machine.cpu}, {machine.memory_gb:g} GB, {machine.system}, "
            f"Python {machine.python}, Node {machine.node or '–'}; load average "
            f"{machine.load_before:g} before, {machine.load_after:g} after."]
    if loop:
        said.append(f"Reference loop (a plain pipeline on the same server): {cell(loop)} tasks/s.")
    return said


def lacking(report: Report) -> list[str]:
    """What was not measured, and why, with how many there are of it."""
    missing = [peer for peer in report.peers if peer.not_run]
    return [*(f"{number} of {len(missing)} peers not run: {peer.name}: {peer.not_run}"
              for number, peer in enumerate(missing, 1)),
            *(f"{name} broke, and was not measured further: {reason}"
              for name, reason in report.broken.items())]


def ratio_rows(report: Report) -> Iterator[list[str]]:
    for name, value in report.ratios.items():
        yield [name, number(value) if value is not None else f"– ({report.why_null[name]})"]


def show(report: Report, console: Console) -> None:
    """Print everything."""
    table = Table(title="Benchmark", title_justify="left")
    table.add_column("")
    for head in heads(report):
        table.add_column(head, justify="right")
    for row in rows(report):
        table.add_row(*row)
    if table.rows:
        console.print(table)
    for title, lines in (("HTTP", http_rows(report)), ("Limits", limit_rows(report)),
                         ("Ratios", ratio_rows(report))):
        small = Table(title=title, title_justify="left", show_header=False)
        for row in lines:
            small.add_row(*row)
        if small.rows:
            console.print(small)
    for peer in report.peers:
        if peer.figures:
            console.print(f"[b]{peer.name}[/b], {peer.language}, {peer.size}: {peer.guarantee} "
                          f"{peer.settings}", highlight=False)
    for line in lacking(report):
        console.print(line, highlight=False, style="yellow", markup=False)
    for line in facts(report):
        console.print(line, highlight=False)


def markdown(report: Report) -> str:
    """The same as Markdown."""
    lines = [*_grid(["", *heads(report)], list(rows(report)))]
    if report.http:
        lines += ["", *_grid(["HTTP, one API process", ""], list(http_rows(report)))]
    if report.limits:
        lines += ["", *_grid(["what no engine can do without", ""], list(limit_rows(report)))]
    lines += ["", *_grid(["ratio", ""], list(ratio_rows(report)))]
    lines += ["", *_grid(["", "on a worker's death", "one worker", "settings"],
                         [[peer.name, peer.guarantee, peer.size, peer.settings]
                          for peer in peers_that_ran(report)])]
    lines += ["", *(f"- {line}" for line in [*lacking(report), *facts(report)])]
    return "\n".join(lines) + "\n"


def _grid(head: list[str], body: list[list[str]]) -> list[str]:
    marks = ["---", *["--:" if len(head) > 2 and "settings" not in head else "---"
                      for _ in head[1:]]]
    return [f"| {' | '.join(row)} |" for row in (head, marks, *body)]

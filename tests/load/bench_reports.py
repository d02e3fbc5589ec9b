"""Reports of the benchmark, made by hand."""

from __future__ import annotations

import msgspec
from dtq_load.bench import results
from dtq_load.bench.figures import figure
from dtq_load.bench.recovery import Recovery
from dtq_load.bench.results import Machine, PeerReport, Report

MACHINE = Machine(cpus=2, cpu="a processor", memory_gb=8.0, system="Linux", python="3.11.7",
                  node="", load_before=0.1, load_after=0.9)


def row(name: str, *, language: str = "Python", not_run: str = "",
        recovery: Recovery | None = None, **figures: float) -> PeerReport:
    """A peer with one value for each figure."""
    return PeerReport(name=name, language=language, version="1.0", size="1 × 8",
                      settings="Its settings.", guarantee="Its guarantee.", not_run=not_run,
                      figures={what: figure([value]) for what, value in figures.items()},
                      recovery=recovery)


def report(*peers: PeerReport, loop: float | None = None,
           limits: dict[str, float] | None = None,
           http: dict[str, float] | None = None) -> Report:
    """A report with its ratios."""
    bare = Report(begun="2026-01-01T00:00:00+0000", machine=MACHINE, broker="valkey 9",
                  persistence="none", rounds=1, tasks=1_000, peers=list(peers),
                  reference_loop_per_s=figure([loop]) if loop else None,
                  limits={what: figure([value]) for what, value in (limits or {}).items()},
                  http={what: figure([value]) for what, value in (http or {}).items()})
    values, reasons = results.ratios(bare)
    return msgspec.structs.replace(bare, ratios=values, why_null=reasons)


FULL = report(
    row("dtq", one_worker_per_s=9_000, two_workers_per_s=12_000, idle_p50_ms=0.6,
        server_cpu_s_per_10k=0.4, round_trips_per_task=0.05, rss_mb=50, rss_leader_mb=37,
        cost_us_at_1000=100, cost_us_at_1000000=110, recovery=Recovery(64, 0, 31.25, 90)),
    row("huey", one_worker_per_s=1_000, two_workers_per_s=1_500, idle_p50_ms=1.5,
        recovery=Recovery(2, 2, None, 90)),
    row("dramatiq", one_worker_per_s=1_200, two_workers_per_s=1_300, idle_p50_ms=3),
    row("bullmq", language="Node", one_worker_per_s=4_500, two_workers_per_s=6_000, idle_p50_ms=1),
    row("celery", not_run="celery is not installed here"),
    loop=10_000, limits={"bare_commands_us": 12.5, "own_commands_us": 25.0, "bare_calls_ms": 0.2,
                         "own_calls_ms": 0.4},
    http={"ingest_one_by_one_per_s": 1_500, "empty_one_by_one_per_s": 3_000,
          "ingest_batch_per_s": 10_000, "empty_batch_per_s": 100_000})
"""Everything was measured but Celery, which is not there."""

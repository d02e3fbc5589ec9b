"""The table: what stands in its cells, and that speed is never shown without its guarantee."""

from __future__ import annotations

import io

import pytest
from dtq_load.bench import table
from dtq_load.bench.figures import figure
from rich.console import Console

from tests.load.bench_reports import FULL


@pytest.mark.parametrize(("value", "expected"), [
    (12345.6, "12,346"), (99.94, "99.9"), (9.994, "9.99"), (0.034, "0.03")])
def test_a_number_has_as_many_digits_as_count(value: float, expected: str) -> None:
    assert table.number(value) == expected


def test_a_cell_has_the_range_where_there_is_one() -> None:
    assert table.cell(figure([120.0, 100.0, 110.0])) == "110 (100–120)"
    assert table.cell(figure([110.0])) == "110"
    assert table.cell(None) == "–"


def test_a_recovery_that_took_too_long_says_of_how_many() -> None:
    rows = {row[0]: row[1:] for row in table.rows(FULL)}
    assert rows["its tasks run again after SIGKILL, s"] == \
        ["31.2", "not within 90 s: 2 of 2", "–", "–"]


def test_figures_come_in_the_order_of_their_list_and_depths_last() -> None:
    assert table.names(FULL) == [
        "one_worker_per_s", "two_workers_per_s", "idle_p50_ms", "round_trips_per_task",
        "server_cpu_s_per_10k", "rss_mb", "rss_leader_mb", "cost_us_at_1000", "cost_us_at_1000000"]


@pytest.mark.parametrize("shown", [
    "dtq 1.0", "12,000", "Its guarantee.", "celery is not installed here", "1 of 1 peers not run",
    "one_worker_vs_bullmq", "persistence none", "HTTP, one by one", "12.5",
    "five calls of an idle task", "load average 0.1 before"])
def test_terminal_and_markdown_say(shown: str) -> None:
    console = Console(file=io.StringIO(), width=400)
    table.show(FULL, console)
    assert isinstance(console.file, io.StringIO)
    assert shown in console.file.getvalue()
    assert shown in table.markdown(FULL)


def test_every_line_of_a_markdown_table_has_as_many_cells() -> None:
    for block in table.markdown(FULL).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1, block

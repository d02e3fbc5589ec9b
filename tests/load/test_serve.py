"""Locust's page: it is served, a test is run on it and judged, and it ends without a trace."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from dtq_conformance import history
from dtq_conformance.exits import INTERRUPTED

from tests.load.chromium import tab
from tests.load.command import LIMIT_S, Served, serve
from tests.reports.browser import ABSENT, CHROMIUM

pytestmark = pytest.mark.slow


def fetched(address: str, **form: object) -> str:
    data = urllib.parse.urlencode(form).encode() if form else None
    with urllib.request.urlopen(address, data, timeout=LIMIT_S) as answer:
        assert answer.status == 200
        text: str = answer.read().decode()
    return text


def saved_run(served: Served, number: int = 1) -> Path:
    """The folder of the run of this number, which is told after its verdict."""
    return Path(served.await_text("(?s)" + "Run: .*?" * (number - 1) + r"Run: ([^\n]+)\n"))


def test_the_page_runs_tests_that_are_judged_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with serve(tmp_path, "--workload", "burst_under_fire", "--tasks", "200") as served:
        assert "Locust" in fetched(served.address)

        fetched(served.address + "/swarm", user_count=10, spawn_rate=10)
        assert served.await_text(r"All (\d+) tested clauses hold") == "10"
        first = saved_run(served)

        fetched(served.address + "/swarm", user_count=10, spawn_rate=10, run_time="1s")
        second = saved_run(served, 2)

        processes = psutil.Process(served.process.pid).children(recursive=True)
        assert served.interrupt() == INTERRUPTED
        _, alive = psutil.wait_procs(processes, timeout=LIMIT_S)
        assert not alive
    assert first != second
    assert len(history.read(first / "history.jsonl").accepted) == 200
    assert sorted((tmp_path / "runs").iterdir()) == sorted([first, second])


def test_a_test_that_is_stopped_before_it_had_begun_is_no_run(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        fetched(served.address + "/swarm", user_count=1, spawn_rate=1)
        served.await_text("(A test was started)")
        fetched(served.address + "/stop", any="thing")
        served.await_text(r"(stopped before it had begun|Run: )")
        fetched(served.address + "/swarm", user_count=1, spawn_rate=1, run_time="2s")
        assert served.await_text(r"All (\d+) tested clauses hold") == "8"


ROW = """[...document.querySelectorAll('tr')].some(row => row.innerText.includes('{name}')
         && parseInt(row.cells[2].innerText) > 20)"""


def test_a_run_is_started_in_a_browser_and_its_rows_fill_until_it_stops(
        tmp_path: Path, need: Callable[[object, str], None]) -> None:
    need(CHROMIUM, ABSENT)
    with serve(tmp_path, "--users", "5", "--seconds", "10") as served, tab(tmp_path) as page:
        page.open(served.address)
        button = "[...document.querySelectorAll('button')].find(each => /^start$/i.test(" \
                 "each.innerText.trim()))"
        page.await_true(button + " !== undefined")
        assert "no host attribute" not in page.run("document.body.innerText")
        page.screenshot(tmp_path / "before.png")
        page.run(button + ".click()")
        for name in ("accepted", "finished"):
            page.await_true(ROW.format(name=name))
        page.screenshot(tmp_path / "running.png")
        assert served.await_text(r"All (\d+) tested clauses hold") == "8"
        assert "report.html" in served.await_text(r"Report: (.+)")
        page.open(served.address)  # an answer that the page has missed is asked for again
        page.await_true("/stopped/i.test(document.body.innerText)")
        page.screenshot(tmp_path / "stopped.png")

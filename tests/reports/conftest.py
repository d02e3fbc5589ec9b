"""Runs that the tests of the reports read: written once a session, then only looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from dtq_reports.page import Written, write_report
from dtq_reports.read import Run, read_run, read_runs

from tests.reports import example_runs


@pytest.fixture(scope="session")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a held, a violated, a control run and a burst of 600 tasks."""
    folder = tmp_path_factory.mktemp("batch")
    for write in (example_runs.held_run, example_runs.violated_run, example_runs.canary_run,
                  example_runs.burst_run):
        write(folder)
    return folder


@pytest.fixture(scope="session")
def held(batch: Path) -> Run:
    return read_run(batch / "held-0007")


@pytest.fixture(scope="session")
def violated(batch: Path) -> Run:
    return read_run(batch / "violated-0007")


@pytest.fixture(scope="session")
def canary(batch: Path) -> Run:
    return read_run(batch / "canary-0007")


@pytest.fixture(scope="session")
def burst(batch: Path) -> Run:
    return read_run(batch / "burst-0007")


@pytest.fixture(scope="session")
def written(batch: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The report on the whole batch."""
    return write_report(read_runs(batch), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def accusing(violated: Run, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The report on the violated run alone."""
    return write_report([violated], tmp_path_factory.mktemp("accusing"))

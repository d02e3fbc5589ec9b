"""The options and the fixture with which the cases also run as plain pytest tests.

Comes in: pytest's command line. Goes out: `dtq_case`, which runs one case as the scheduler does and
fails the test unless its verdict holds. Loaded by every pytest that finds this distribution, so at
its top it imports nothing but pytest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dtq_conformance.scheduler import Ended


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which target, on which broker."""
    group = parser.getgroup("dtq", "the contract of a task queue (dtq_conformance.pytest_cases)")
    group.addoption("--dtq-target", default="reference", metavar="TARGET",
                    help="reference, broken:NAME, or module:attribute (default reference)")
    group.addoption("--dtq-broker", default="embedded", metavar="BROKER",
                    help="the broker, as `dtq-conformance run --broker` takes it "
                         "(default embedded)")
    group.addoption("--dtq-seed", type=int, default=0, metavar="SEED",
                    help="the seed of all that is random (default 0)")


@pytest.fixture
def dtq_case(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], None]:
    """Run the case of this name, and fail or skip the test by its verdict."""
    def run_and_tell(name: str) -> None:
        ended = _run(name, request.config, tmp_path)
        if ended.status == "not claimed":
            pytest.skip(told(ended))
        if not ended.is_as_expected:
            pytest.fail(told(ended), pytrace=False)

    return run_and_tell


def _run(name: str, config: pytest.Config, out: Path) -> Ended:
    from dtq_conformance.exits import InputError
    from dtq_conformance.run import run_all

    asked = argparse.Namespace(
        target=config.getoption("--dtq-target"), broker=config.getoption("--dtq-broker"),
        seed=config.getoption("--dtq-seed"), out=out, jobs=1, json=True)
    try:
        (ended,) = run_all(["dtq_conformance", "case"], [name], asked)
    except InputError as error:
        pytest.fail(str(error), pytrace=False)
    return ended


def told(ended: Ended) -> str:
    """A verdict as lines: its sentence, all findings, and how to see and to repeat it."""
    verdict = ended.verdict
    if verdict is None:
        return f"no verdict: {ended.problem}"
    findings = [f"{row.clause} {finding.status} ({row.checker}): {finding.sentence}"
                for row in verdict.rows for finding in row.findings]
    return "\n".join([verdict.sentence, *findings, f"the run: {ended.folder}",
                      f"repeat with: {verdict.repeat}"])

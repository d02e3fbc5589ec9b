"""What every test of this repository shares: honest skips, seeds, and where the time went.

A tool that is optional and missing makes a visible, counted skip on a developer's machine and an
error when CI=true, where nothing may be missing.
"""

from __future__ import annotations

import gc
import os
import random
from collections import defaultdict
from collections.abc import Callable, Generator

import pytest
from hypothesis import settings


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("local", deadline=None, print_blob=True)
settings.load_profile("ci" if in_ci() else "local")


@pytest.fixture(scope="session")
def need() -> Callable[[object, str], None]:
    """Tell what a test cannot do without: `need(shutil.which("go"), "Go is not on the PATH")`.

    Where it is missing the test is skipped, visibly and counted; with CI=true it fails instead.
    """

    def need_or_skip(present: object, reason: str) -> None:
        if present:
            return
        if in_ci():
            pytest.fail(f"CI=true, and this is missing: {reason}", pytrace=False)
        pytest.skip(f"not run: {reason}")

    return need_or_skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """The engine's own tests run on one broker, which can be another one than the embedded."""
    parser.addoption("--engine-broker", default="embedded", metavar="BROKER",
                     help="the broker of tests/reference: embedded, path, docker:IMAGE, redis://…")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without collecting garbage: thousands of tests come and none goes, and later nobody
    needs to look at them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 50, 100)  # trees of syntax and histories are large, and no cycles


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw Hypothesis's seed here, so that it can be printed; in CI the examples are fixed."""
    if not in_ci() and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.getoption("hypothesis_seed", None)
    if seed is None:
        return "hypothesis: the same examples in every run (profile ci)"
    return f"hypothesis: seed {seed}; repeat with --hypothesis-seed={seed}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter,
                            config: pytest.Config) -> None:
    """Print the seconds that each test module took, longest first, and the seed once more."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if seconds:
        terminalreporter.section("seconds per module")
    for module, duration_s in sorted(seconds.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"{duration_s:7.2f}  {module}")
    if seconds:
        terminalreporter.write_line(pytest_report_header(config))

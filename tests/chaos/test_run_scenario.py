"""`dtq-chaos scenario`: what the scheduler starts for one scenario, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from dtq_chaos.__main__ import main
from dtq_chaos.faults import FAULTS
from dtq_chaos.scenario import planned
from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance.exits import INPUT


@pytest.fixture
def schedule(tmp_path: Path) -> Path:
    """A schedule of worker_killed_twice, as a run saves it."""
    path = tmp_path / "schedule.json"
    made = planned(SCENARIOS["worker_killed_twice"], target="reference", broker="embedded", seed=1)
    path.write_bytes(msgspec.json.encode(made))
    return path


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said about arguments that are refused before anything runs."""
    assert main(["scenario", *arguments]) == INPUT
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    return err


def test_an_unknown_scenario_is_answered_with_the_known_ones(
        capsys: pytest.CaptureFixture[str]) -> None:
    told = complaint(capsys, "nonsense")
    assert "no scenario 'nonsense'" in told
    assert all(name in told for name in SCENARIOS)


def test_a_schedule_of_another_scenario_is_refused(
        capsys: pytest.CaptureFixture[str], schedule: Path) -> None:
    assert "is a schedule of worker_killed_twice, not of canary." in complaint(
        capsys, "canary", "--schedule", str(schedule))


def test_a_schedule_with_an_unknown_fault_is_answered_with_the_known_ones(
        capsys: pytest.CaptureFixture[str], schedule: Path) -> None:
    schedule.write_bytes(schedule.read_bytes().replace(b"kill_worker", b"tickle_worker"))
    told = complaint(capsys, "worker_killed_twice", "--schedule", str(schedule))
    assert "no fault 'tickle_worker'" in told
    assert all(name in told for name in FAULTS)


@pytest.mark.parametrize("content", [None, b"{}"])
def test_a_schedule_that_cannot_be_read_is_refused(
        capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "schedule.json"
    if content is not None:
        path.write_bytes(content)
    assert "schedule.json" in complaint(capsys, "canary", "--schedule", str(path))

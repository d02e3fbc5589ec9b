"""`dtq-chaos replay`: a run once more, with the same verdict; and folders that are no run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dtq_chaos.__main__ import main
from dtq_chaos.scenario import planned
from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance.exits import INPUT, VIOLATED
from dtq_conformance.history import read

from tests.conformance.scheduled import run, runs

BROKEN = (("enqueues_a_copy", "worker_terminated_mid_handler", "nothing_invented"),
          ("does_not_count_redelivery", "worker_killed_mid_handler", "attempts_bounded"),
          ("settles_without_fencing", "worker_stopped_past_its_lease", "one_terminal_state"))
"""A broken engine, a scenario that is over soon, and the checker that must convict it there."""


def convicted(*arguments: str) -> dict[str, Any]:
    """The one run of a command that must end with a violation."""
    done = run("dtq_chaos", *arguments, "--json")
    assert done.returncode == VIOLATED, done.stdout + done.stderr
    (found,) = runs(done).values()
    return found


def run_and_replay(case: tuple[str, str, str], out: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    engine, scenario, _ = case
    first = convicted("run", scenario, "--target", f"broken:{engine}", "--seed", "5", "--out",
                      str(out / engine))
    return first, convicted("replay", first["folder"], "--out", str(out / engine))


@pytest.mark.slow
def test_a_violated_run_is_violated_again_by_the_same_checker(tmp_path: Path) -> None:
    with ThreadPoolExecutor(len(BROKEN)) as pool:
        pairs = list(pool.map(run_and_replay, BROKEN, [tmp_path] * len(BROKEN)))
    for (engine, scenario, checker), (first, second) in zip(BROKEN, pairs, strict=True):
        assert checker in first["verdict"]["convicted_by"]
        assert checker in second["verdict"]["convicted_by"]
        assert first["folder"] != second["folder"]
        for name in ("trial", "target", "seed", "broker"):
            assert first["verdict"][name] == second["verdict"][name]
        assert (first["verdict"]["trial"], first["verdict"]["seed"]) == (scenario, 5)
        assert first["verdict"]["target"] == f"broken:{engine}"
        schedules = [json.loads((Path(each["folder"]) / "schedule.json").read_bytes())
                     for each in (first, second)]
        assert schedules[0] == schedules[1]
        submitted = [set(read(Path(each["folder"]) / "history.jsonl").submissions)
                     for each in (first, second)]
        assert submitted[0] == submitted[1]


def complaint(capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    assert main(["replay", str(folder)]) == INPUT
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    return err


def save_schedule(folder: Path, scenario: str) -> None:
    made = planned(SCENARIOS["canary"], target="reference", broker="embedded", seed=1)
    (folder / "schedule.json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(made, scenario=scenario)))


def test_a_folder_without_a_schedule_is_no_run_of_chaos(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = complaint(capsys, tmp_path)
    assert "schedule.json cannot be read" in told
    assert "A run of dtq-chaos has a schedule.json in its folder." in told


def test_a_folder_that_is_not_there_is_named(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(tmp_path / "absent") in complaint(capsys, tmp_path / "absent")


def test_a_run_that_left_no_history_cannot_be_replayed(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_schedule(tmp_path, "canary")
    assert "history.jsonl cannot be read" in complaint(capsys, tmp_path)


@pytest.mark.parametrize("option", ["--target", "--broker", "--seed", "--jobs"])
def test_what_a_run_has_settled_cannot_be_asked_for(tmp_path: Path, option: str) -> None:
    assert main(["replay", str(tmp_path), option, "1"]) == INPUT

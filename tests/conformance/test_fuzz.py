"""`dtq-conformance fuzz` as it is used: a sound engine passes, a broken one is found and shrunk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dtq_conformance.history import Fault, Process, read

pytestmark = pytest.mark.slow

ABSORBED, IGNORED = "4", "19"
"""Seeds under which the two defects are found and shrunk with few lives. What is drawn depends also
on the modules that are loaded, since Hypothesis tries their constants; then it takes longer."""
LIVES = "200"
"""Ample: one life in ten or so has what these engines cannot do, and the first ends the drawing."""


def fuzz(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dtq_conformance", "fuzz", "--out", str(folder), *arguments],
        capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ))


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_the_reference_is_accused_of_nothing(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--seed", "1", "--examples", "5", "--json")
    found = told(done)
    assert (found["steps"], found["verdict"]) == ([], None)
    assert done.returncode == (2 if found["unknown"] else 0)
    assert 1 < found["played"] <= found["drawn"]
    assert len(list(tmp_path.glob("*/*/history.jsonl"))) >= found["played"]


@pytest.mark.slow
def test_a_second_redelivery_that_is_absorbed_is_found_and_shrunk_to_five_steps(
        tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--target", "broken:absorbs_second_redelivery", "--seed", ABSORBED,
                "--steps", "6", "--claims", "delivery", "--examples", LIVES, "--json")
    assert done.returncode == 1, done.stderr
    found = told(done)
    assert "nothing_lost" in found["verdict"]["convicted_by"]
    assert len(found["steps"]) <= 5
    assert found["steps"][0].startswith("submit task 1, ")
    befallen = [step for step in found["steps"] if step.startswith(("kill", "stop"))]
    assert len(befallen) >= 2
    history = read(Path(found["history"]))
    assert sum(fault.phase == "begin" for fault in history.of(Fault)) == len(befallen)
    assert {process.role for process in history.of(Process)} == {"worker", "pacemaker"}
    assert f"--seed {ABSORBED}" in found["repeat"]


@pytest.mark.slow
def test_a_pause_that_is_ignored_is_found(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--target", "broken:ignores_pauses", "--seed", IGNORED, "--steps", "5",
                "--claims", "pause", "--examples", LIVES, "--json")
    assert done.returncode == 1, done.stderr
    found = told(done)
    assert "paused_means_paused" in found["verdict"]["convicted_by"]
    assert "pause the queue" in found["steps"]
    assert "--claims pause" in found["repeat"]


@pytest.mark.parametrize(("arguments", "words"), [
    (("--target", "nobody"), "There is no target 'nobody'"),
    (("--examples", "0"), "0 is not a number from 1"),
    (("--claims", "patience"), "patience: no such claim; known are delivery, "),
    (("--broker", "redis://127.0.0.1:1/0"), "cannot be reached")])
def test_bad_input_is_told_in_a_sentence(
        tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = fuzz(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (4, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr

"""A queue that this house has never heard of is judged from outside, as the README of conformance
shows it: a folder of its own, an installed package, `module:attribute`, and what its author reads.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "stranger"
README = Path(__file__).parents[2] / "conformance" / "README.md"
TARGET = ("--target", "judged:TINY", "--jobs", "2")
FEW_CASES = ("a_killed_holder_is_replaced", "everything_runs_once", "sent_again_is_one_task",
             "failures_for_good_leave_a_letter")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The stranger's folder: the queue, what makes a target of it, and a file whose name is that
    of a module which the harness uses."""
    for source in HERE.glob("*.py"):
        shutil.copy(source, tmp_path)
    (tmp_path / "psutil.py").write_text("raise ImportError('a file of the stranger, not ours')")
    return tmp_path


def run(project: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an installed command in the stranger's folder, which is not on any path but as the
    current one."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments, "--out", str(project / "runs")],
        cwd=project, env={**environment, "COLUMNS": "300"}, capture_output=True, text=True,
        timeout=100, check=False)


def violated(verdict: dict[str, Any], clause: str) -> list[str]:
    """The sentences that convict the target of a breach of this clause."""
    (row,) = [row for row in verdict["rows"] if row["clause"] == clause]
    assert row["status"] == "violated"
    return [finding["sentence"] for finding in row["findings"]]


def test_a_queue_without_acknowledgement_is_found_to_lose_what_its_dead_worker_had(
        project: Path) -> None:
    done = run(project, "dtq-conformance", "run", *FEW_CASES, *TARGET, "--json")
    told = json.loads(done.stdout)
    runs = {each["name"]: each for each in told["runs"]}
    assert done.returncode == 1, done.stderr
    assert runs["everything_runs_once"]["status"] == "holds"
    for clause in ("DLV-01", "DLV-03"):
        sentences = violated(runs["a_killed_holder_is_replaced"]["verdict"], clause)
        assert len(sentences) == 3  # the tasks that the killed worker had popped
        for words in ("was accepted", "was started once", "by worker-1", "which was killed",
                      "never again", "no further execution was witnessed"):
            assert words in sentences[0]
    assert told["not_claimed"] == {
        "sent_again_is_one_task": "It needs a target that claims submission.",
        "failures_for_good_leave_a_letter": "It is about dlq, which the target does not claim."}
    assert told["not_run"] == {}


def test_a_scenario_convicts_it_in_the_words_of_the_contract(project: Path) -> None:
    done = run(project, "dtq-chaos", "run", "worker_killed_mid_handler", "canary", *TARGET)
    assert done.returncode == 1, done.stderr
    for words in ("was killed", "never again", "DLV-03 asks: A task whose holder died is executed "
                  "again: acknowledgement follows the record of the outcome, never the receipt.",
                  "It needs a target that claims redis-schema.",
                  "dtq-chaos run worker_killed_mid_handler --target judged:TINY"):
        assert words in done.stdout


def test_a_worker_that_cannot_start_is_a_mistake_told_with_its_last_words_and_no_verdict(
        project: Path) -> None:
    module = project / "judged.py"
    module.write_text(module.read_text().replace('"-m", "judged"', '"-m", "judge"'))
    done = run(project, "dtq-conformance", "run", "everything_runs_once", *TARGET, "--json")
    assert done.returncode == 4, done.stdout
    (ended,) = json.loads(done.stdout)["runs"]
    assert ended["verdict"] is None
    assert "exited with code 1 before it had executed anything" in ended["problem"]
    assert "No module named judge" in ended["problem"]


def test_the_readme_shows_this_very_adapter() -> None:
    assert f"```python\n{(HERE / 'judged.py').read_text()}```" in README.read_text()

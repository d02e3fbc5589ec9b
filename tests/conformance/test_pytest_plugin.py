"""The cases as plain pytest tests, in a pytest of their own, outside this checkout's settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dtq_conformance.cases import CASES
from dtq_conformance.pytest_plugin import told
from dtq_conformance.scheduler import Ended
from dtq_conformance.verdict import Finding, RunVerdict, Verdict

pytestmark = pytest.mark.slow

COMMAND = ("pytest", "-p", "no:cacheprovider", "--pyargs", "dtq_conformance.pytest_cases")


def ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *COMMAND, *arguments], cwd=folder,
                          capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_case_passes_on_the_reference_and_fails_with_its_findings_on_a_broken_engine(
        tmp_path: Path) -> None:
    name = "accepted_tasks_are_there"
    held = ask(tmp_path, "-k", name, "--dtq-target", "reference", "--dtq-broker", "embedded")
    assert held.returncode == 0, held.stdout + held.stderr
    assert "1 passed" in held.stdout
    found = ask(tmp_path, "-k", name, "--dtq-target", "broken:enqueues_a_copy", "--dtq-seed", "3")
    assert found.returncode == 1, found.stdout + found.stderr
    for part in ("1 failed", "violated (nothing_invented): Task ", "nobody had submitted it",
                 f"repeat with: dtq-conformance run {name} --target broken:enqueues_a_copy "
                 "--broker embedded --seed 3"):
        assert part in found.stdout
    assert "Traceback" not in found.stdout


def test_every_case_is_a_test_and_bad_input_fails_in_one_sentence(tmp_path: Path) -> None:
    listed = ask(tmp_path, "--collect-only", "-q")
    assert [name for name in CASES if f"::test_case[{name}]" not in listed.stdout] == []
    bad = ask(tmp_path, "-k", "idle_workers_stop", "--dtq-broker", "nonsense")
    assert bad.returncode == 1
    assert "There is no broker 'nonsense'. Known are" in bad.stdout


def test_a_verdict_is_told_with_all_its_findings() -> None:
    finding = Finding(status="violated", task_id="t", sentence="Task t is lost.", evidence={})
    row = Verdict(clause="DLV-01", checker="nothing_lost", status="violated", judged=1,
                  sentence="Task t is lost.", findings=(finding, finding))
    verdict = RunVerdict(run_id="r", room="conformance", trial="c", target="t", broker="b", seed=1,
                         status="violated", sentence="violated: it is lost.", rows=(row,),
                         convicted_by=("nothing_lost",), marks_missing=(), repeat="again")
    assert told(Ended("c", 1, Path("runs/r"), verdict)).splitlines() == [
        "violated: it is lost.", *["DLV-01 violated (nothing_lost): Task t is lost."] * 2,
        "the run: runs/r", "repeat with: again"]
    assert told(Ended("c", 4, problem="No broker.")) == "no verdict: No broker."

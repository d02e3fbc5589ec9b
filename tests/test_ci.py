"""The workflow for GitHub: it parses, and every session, option and action that it names exists."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dtq_reports.__main__ import main as report

ROOT = Path(__file__).parents[1]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def steps() -> Iterator[dict[str, Any]]:
    for job in JOBS.values():
        yield from job["steps"]


def sessions() -> set[str]:
    """The sessions of noxfile.py: its functions with the decorator."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)
            and "nox.session" in [ast.unparse(each) for each in node.decorator_list]}


def named(job: dict[str, Any]) -> Iterator[str]:
    """The sessions that a job's steps run, a matrix's ones each by its name."""
    for step in job["steps"]:
        for session in re.findall(r"\bnox -s (\$\{\{ matrix\.\w+ \}\}|\S+)", step.get("run", "")):
            key = re.fullmatch(r"\$\{\{ matrix\.(\w+) \}\}", session)
            yield from job["strategy"]["matrix"][key[1]] if key else [session]


@pytest.mark.parametrize("job", sorted(JOBS))
def test_each_job_runs_sessions_of_the_noxfile_and_no_other_program_of_this_house(job: str) -> None:
    assert set(named(JOBS[job])) and set(named(JOBS[job])) <= sessions()
    assert not [step for step in JOBS[job]["steps"] if re.search(r"\bdtq-", step.get("run", ""))]


def test_each_action_is_pinned_by_its_version_tag() -> None:
    actions = [step["uses"] for step in steps() if "uses" in step]
    assert actions
    assert not [use for use in actions if not re.fullmatch(r"[\w/-]+@v\d+(\.\d+)*", use)]


def test_each_step_does_one_of_the_two_things() -> None:
    assert all(("run" in step) != ("uses" in step) for step in steps())


@pytest.mark.parametrize("job", ["house", "verify"])
def test_the_pythons_go_from_the_oldest_that_is_promised_to_the_newest(job: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = JOBS[job]["strategy"]["matrix"]["python"]
    assert pythons == [f"3.{minor}" for minor in range(11, 15)]
    assert project["requires-python"] == f">={pythons[0]}"


def test_the_redis_that_is_a_service_is_the_one_that_is_visited() -> None:
    job = JOBS["verify"]
    ((port, _),) = [mapping.split(":") for mapping in job["services"]["redis"]["ports"]]
    assert f"redis://127.0.0.1:{port}/0" in job["strategy"]["matrix"]["broker"]


def test_the_summary_is_written_by_an_option_that_the_report_has(
        capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [step["run"] for step in steps() if "GITHUB_STEP_SUMMARY" in step.get("run", "")]
    options = {word for word in shlex.split(line.partition(">>")[0].partition(" -- ")[2])
               if word.startswith("--")}
    assert options == {"--markdown"}
    assert report(["--help"]) == 0
    assert "--markdown" in capsys.readouterr().out

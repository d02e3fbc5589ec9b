"""`dtq-conformance run`: real cases on the real reference, and questions without an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dtq_conformance.__main__ import main
from dtq_conformance.cases import CASES
from dtq_conformance.exits import CONFORMS, INPUT, VIOLATED
from dtq_conformance.targets.broken import DEFECTS

from tests.conformance.scheduled import run, runs


@pytest.mark.parametrize(("arguments", "parts"), [
    (["nonsense"], ["no case 'nonsense'", *CASES]),
    (["--target", "nonsense"], ["no target 'nonsense'", "reference", "broken:NAME"]),
    (["--target", "broken:nonsense"], ["no broken engine 'nonsense'", *DEFECTS]),
    (["--target", "no_such_module:X"], ["cannot be loaded", "no_such_module"]),
    (["--target", "sys:path"], ["'sys:path' is not a target", "no claims", "no open"]),
    (["--broker", "nonsense"], ["no broker 'nonsense'", "embedded", "path", "redis://"]),
    (["--broker", "redis://127.0.0.1:1"], ["127.0.0.1:1 cannot be reached"]),
    (["--broker", "redis://127.0.0.1:port"], ["URL is malformed"]),
])
def test_a_bad_question_is_one_sentence_and_nothing_is_run(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str],
        parts: list[str]) -> None:
    assert main(["run", *arguments, "--out", str(tmp_path / "runs")]) == INPUT
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert [part for part in parts if part not in err] == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--jobs", "many"], ["--seed", "x"],
                                       ["--no-such-option"]], ids=" ".join)
def test_a_bad_option_is_bad_usage(arguments: list[str],
                                   capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == INPUT
    assert "usage: dtq-conformance" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["--anew"]], ids=["forked", "anew"])
def test_cases_are_run_side_by_side_and_each_leaves_a_folder_that_can_be_judged_again(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], how: list[str]) -> None:
    names = ["everything_runs_once", "a_killed_holder_is_replaced", "commands_answer_in_json"]
    done = run("dtq_conformance", "run", *names, "--json", *how, "--out", str(tmp_path))
    assert done.returncode == CONFORMS, done.stdout + done.stderr
    found = runs(done)
    assert list(found) == names
    assert done.stderr == ""
    for name, each in found.items():
        folder = Path(each["folder"])
        assert folder.parent == tmp_path
        assert (each["status"], each["as_expected"]) == ("holds", True)
        assert {row["clause"] for row in each["verdict"]["rows"]} == set(CASES[name].clauses)
        assert main(["judge", str(folder / "history.jsonl"), "--json"]) == CONFORMS
        assert json.loads(capsys.readouterr().out) == each["verdict"]


@pytest.mark.slow
def test_a_violation_names_the_command_that_repeats_it_and_its_seed_is_the_one_given(
        tmp_path: Path) -> None:
    target = "broken:enqueues_a_copy"
    done = run("dtq_conformance", "run", "accepted_tasks_are_there", "--target", target,
               "--seed", "11", "--out", str(tmp_path))
    assert done.returncode == VIOLATED, done.stdout + done.stderr
    (folder,) = tmp_path.iterdir()
    command = ("dtq-conformance run accepted_tasks_are_there --target broken:enqueues_a_copy "
               "--broker embedded --seed 11")
    assert f"accepted_tasks_are_there: {folder}\n  repeat with: {command}\n" in done.stdout
    assert json.loads((folder / "verdict.json").read_bytes())["convicted_by"] == [
        "nothing_invented"]

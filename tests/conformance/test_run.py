"""Trials side by side: what their ends mean together, and the scheduler's own end."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dtq_conformance import run
from dtq_conformance.bench import TargetFault
from dtq_conformance.broker import BrokerError
from dtq_conformance.exits import InputError
from dtq_conformance.lab import LabError
from dtq_conformance.run import code_of, conclude, exit_code, input_faults, known_names, seeds
from dtq_conformance.scheduler import Ended, Job, told
from dtq_conformance.target import UnknownTarget
from dtq_conformance.targets.reference import REFERENCE
from dtq_conformance.verdict import EXIT_CODE, Status
from dtq_conformance.waiting import WaitedTooLong

from tests.conformance.scheduled import Expects, verdict


def ended(status: Status, expects: Expects = "holds", name: str = "story") -> Ended:
    return Ended(name, EXIT_CODE[status], Path("runs/r"), verdict(status, expects))


def failed(code: int, problem: str = "it broke") -> Ended:
    return Ended("story", code, problem=problem)


@pytest.fixture(autouse=True)
def not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


# What one end means -----------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "expects", "alone", "code", "words"), [
    ("holds", "holds", False, 0, "holds"),
    ("holds", "holds", True, 0, "holds"),
    ("violated", "holds", False, 1, "violated"),
    ("violated", "holds", True, 1, "violated"),
    ("unknown", "holds", False, 2, "unknown"),
    ("unknown", "holds", True, 2, "unknown"),
    ("not claimed", "holds", False, 0, "not claimed"),
    ("not claimed", "holds", True, 0, "not claimed"),
    ("violated", "violated", False, 0, "convicted, as it must be"),
    ("violated", "violated", True, 1, "convicted, as it must be"),
    ("holds", "violated", False, 5, "not convicted, and must be"),
    ("holds", "violated", True, 5, "not convicted, and must be"),
    ("unknown", "violated", False, 2, "unknown"),
    ("unknown", "violated", True, 2, "unknown"),
    ("not claimed", "violated", False, 0, "not claimed"),
    ("not claimed", "violated", True, 0, "not claimed"),
])
def test_a_verdict_has_a_code_and_words_of_its_own(
        status: Status, expects: Expects, alone: bool, code: int, words: str) -> None:
    each = ended(status, expects)
    assert (code_of(each, alone=alone), told(each)) == (code, words)
    assert exit_code([each], alone=alone) == code
    assert each.status == status
    assert each.is_as_expected == (status == expects)


@pytest.mark.parametrize("code", [4, 5])
@pytest.mark.parametrize("alone", [False, True])
def test_a_trial_without_a_verdict_keeps_its_code_and_says_why(code: int, alone: bool) -> None:
    each = failed(code)
    assert (code_of(each, alone=alone), told(each)) == (code, "no verdict: it broke")
    assert (each.status, each.is_as_expected) == ("unknown", False)


# What several ends mean together ----------------------------------------------------------------

WORST_FIRST = (failed(5), failed(4), ended("violated"), ended("unknown"), ended("holds"))


@pytest.mark.parametrize("pair", list(itertools.permutations(range(len(WORST_FIRST)), 2)),
                         ids=str)
def test_the_worst_end_is_that_of_the_whole(pair: tuple[int, int]) -> None:
    codes = [code_of(each) for each in WORST_FIRST]
    assert exit_code([WORST_FIRST[place] for place in pair]) == codes[min(pair)]


def test_a_convicted_canary_among_others_leaves_the_whole_conforming() -> None:
    assert exit_code([ended("holds"), ended("violated", "violated")]) == 0


def test_a_canary_that_is_not_convicted_outweighs_a_violation() -> None:
    assert exit_code([ended("violated"), ended("holds", "violated")]) == 5


def test_nothing_run_is_nothing_known() -> None:
    assert exit_code([]) == 2


@pytest.mark.parametrize(("ends", "elsewhere", "in_ci"), [
    ([ended("holds")], 0, 4), ([ended("unknown")], 2, 4), ([ended("violated")], 1, 4),
    ([failed(5)], 5, 5), ([], 2, 4)])
def test_what_could_not_be_run_is_an_error_in_ci_only(
        monkeypatch: pytest.MonkeyPatch, ends: list[Ended], elsewhere: int, in_ci: int) -> None:
    assert exit_code(ends, not_run=1) == elsewhere
    monkeypatch.setenv("CI", "true")
    assert exit_code(ends, not_run=1) == in_ci


def test_the_json_tells_every_end_and_the_code_that_is_returned(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    code = conclude([ended("violated"), failed(5)], as_json=True, out=Path("runs"),
                    not_run={"other": "no proxy"})
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["not_run"], told["out"]) == (code, {"other": "no proxy"},
                                                                  "runs")
    convicted, broken = told["runs"]
    assert convicted["verdict"]["convicted_by"] == ["nothing_lost"]
    assert (convicted["status"], convicted["as_expected"]) == ("violated", False)
    assert convicted["folder"] == "runs/r"
    assert (broken["verdict"], broken["problem"], broken["status"]) == (None, "it broke",
                                                                        "unknown")


def test_the_table_names_the_folder_and_the_command_that_repeats_what_went_wrong(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude([ended("violated"), ended("holds", name="good")], as_json=False,
                    out=Path("runs"), not_run={"other": "no proxy"}) == 1
    told = capsys.readouterr().out
    assert "story: runs/r\n  repeat with: dtq-chaos run story --seed 7\n" in told
    assert "good: " not in told
    assert "no proxy" in told
    assert "1 of 2 trials ended as they should, 1 not run" in told


# What is asked ----------------------------------------------------------------------------------

def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"There is no case 'x'\. Known are a, b\."):
        known_names("case", ["a", "x"], {"a": 1, "b": 2})


def test_a_name_that_is_given_twice_counts_once() -> None:
    assert known_names("case", ["b", "a", "b"], {"a": 1, "b": 2}) == ["b", "a"]


@pytest.mark.parametrize("error", [UnknownTarget("sentence"), BrokerError("sentence"),
                                   TargetFault("sentence")], ids=repr)
def test_faults_of_target_and_broker_are_faults_of_the_input(error: Exception) -> None:
    with pytest.raises(InputError, match=r"^sentence$"), input_faults():
        raise error


@pytest.mark.parametrize("error", [WaitedTooLong("waited"), LabError("lab")], ids=repr)
def test_faults_of_the_bench_are_the_harness_failing(error: Exception) -> None:
    with pytest.raises(RuntimeError, match="the trial could not be carried out"), input_faults():
        raise error


def test_seeds_are_drawn_from_the_first_one() -> None:
    assert seeds(7, 20) == seeds(7, 20) != seeds(8, 20)
    assert len(set(seeds(7, 20))) == 20
    assert seeds(7, 3) == seeds(7, 20)[:3]


@pytest.fixture
def jobs_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Job]]:
    """The jobs that `run_all` makes of trials, which are not run."""
    made: list[Job] = []

    def keep(jobs: list[Job], **_: Any) -> list[Ended]:
        made.extend(jobs)
        return []

    def jobs_of(*names: str, **fields: Any) -> list[Job]:
        monkeypatch.setattr(run, "side_by_side", keep)
        given = {"target": "reference", "broker": "embedded", "out": tmp_path, "seed": 7,
                 "jobs": 2, "json": True, "anew": False}
        run.run_all(["dtq_conformance", "case"], names, argparse.Namespace(**(given | fields)))
        return made

    return jobs_of


def test_a_trial_alone_has_the_seed_that_was_asked_for(jobs_of: Callable[..., list[Job]],
                                                       tmp_path: Path) -> None:
    (job,) = jobs_of("a")
    assert job.argv[0] == sys.executable
    assert job.argv[job.argv.index("-m"):] == [
        "-m", "dtq_conformance", "case", "a", "--target", "reference", "--broker", "embedded",
        "--out", str(tmp_path), "--seed", "7"]


def test_several_trials_have_seeds_of_their_own(jobs_of: Callable[..., list[Job]]) -> None:
    assert [job.argv[-1] for job in jobs_of("a", "b", "c")] == [str(s) for s in seeds(7, 3)]


@pytest.mark.parametrize(("names", "anew", "forked"), [
    ("ab", False, True), ("ab", True, False), ("a", False, False)])
def test_only_where_several_are_run_may_processes_of_the_target_be_forked(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: str, anew: bool,
        forked: bool) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(run, "side_by_side", lambda _, **options: given.update(options))
    run.run_all(["dtq_conformance", "case"], names, argparse.Namespace(
        target="reference", broker="embedded", out=tmp_path, seed=7, jobs=2, json=True, anew=anew))
    assert list(given["preload"]) == (list(REFERENCE.preload) if forked else [])


def test_runs_that_cannot_be_written_anywhere_are_said_so_before_anything_runs(
        jobs_of: Callable[..., list[Job]], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"Runs cannot be written to .*file"):
        jobs_of("a", out=tmp_path / "file")


@pytest.mark.parametrize("as_json", [False, True])
def test_what_no_trial_tests_is_counted_beside_the_verdicts_and_changes_no_code(
        as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    missing = {"PRIO-03": "The order within a level is not looked at."}
    assert conclude([ended("holds")], as_json=as_json, out=Path("runs"), untested=missing) == 0
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out)["untested"] == missing
    else:
        assert "Untested: no trial tests 1 of the clauses that the target claims yet" in out

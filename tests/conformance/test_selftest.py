"""The selftest: an engine that is not convicted as it declares is a failure, and so is the
reference when anything is said against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dtq_conformance import selftest
from dtq_conformance.__main__ import main
from dtq_conformance.cases import CASES
from dtq_conformance.exits import CONFORMS, INPUT, VIOLATED
from dtq_conformance.history import write
from dtq_conformance.scheduler import Ended, Job
from dtq_conformance.selftest import SMOKE, engine_of, failures_of
from dtq_conformance.targets.broken import DEFECTS
from dtq_conformance.targets.defect import Defect
from dtq_conformance.verdict import RunVerdict, Status

from tests.conformance.histories import T, U, flat, header, look

pytestmark = pytest.mark.slow

NAME = "clumsy"


@pytest.fixture(autouse=True)
def clumsy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that nothing_lost must convict, and nothing_invented may."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setitem(DEFECTS, NAME, Defect(NAME, "Is wrong.", ("nothing_lost",),
                                              ("nothing_invented",), lambda: None))


def ended(trial: str, *convicted_by: str, engine: str = NAME, status: Status | None = None,
          folder: Path | None = None) -> Ended:
    found: Status = status or ("violated" if convicted_by else "holds")
    verdict = RunVerdict(
        run_id="r", room="chaos", trial=trial, target=engine, broker="b", seed=1, status=found,
        sentence="What was found.", convicted_by=convicted_by, rows=(), marks_missing=(),
        repeat="again")
    return Ended(f"{engine} {trial}", 0, folder, verdict)


def failures(*ends: Ended, engine: str = NAME) -> list[str]:
    return failures_of(engine_of(engine, list(ends)))


def test_an_engine_that_is_convicted_as_it_declares_is_no_failure() -> None:
    assert failures(ended("a"), ended("b", "nothing_lost")) == []
    assert failures(ended("a", "nothing_invented"), ended("b", "nothing_lost")) == []


def test_an_engine_that_its_checker_does_not_convict_is_a_failure() -> None:
    assert failures(ended("a"), ended("b", "nothing_invented")) == [
        "clumsy: nothing_lost did not convict it, and must"]


def test_a_conviction_that_is_not_declared_is_a_failure_and_names_the_trials() -> None:
    assert failures(ended("a", "nothing_lost", "drained_on_stop"),
                    ended("b", "drained_on_stop")) == [
        "clumsy: drained_on_stop convicted it in a, b, and is not declared"]


def test_a_trial_without_a_verdict_is_a_failure() -> None:
    assert failures(ended("a", "nothing_lost"), Ended("clumsy b", 5, problem="it broke")) == [
        "clumsy: b has no verdict: it broke"]


def test_what_became_of_other_engines_does_not_count() -> None:
    assert failures(ended("a", "nothing_lost"), ended("a", "drained_on_stop", engine="clumsy2"),
                    ended("a", "attempts_bounded", engine="reference")) == []


@pytest.mark.parametrize(("status", "convicted_by"), [
    ("violated", ["nothing_lost"]), ("unknown", []), ("not claimed", [])])
def test_the_reference_must_hold_in_every_trial(status: Status, convicted_by: list[str]) -> None:
    found = failures(ended("a", engine="reference"),
                     ended("b", *convicted_by, engine="reference", status=status),
                     engine="reference")
    assert found[0] == "reference: b: What was found."
    assert found[1:] == [f"reference is accused by {each} in b" for each in convicted_by]


def test_a_clean_reference_is_no_failure() -> None:
    assert failures(ended("a", engine="reference"), engine="reference") == []


def smoked(folder: Path, status: str) -> Ended:
    folder.mkdir()
    write(folder / "history.jsonl", header(), flat([
        look(T, "queued", at=10), look(U, "succeeded"), look(T, status)]))
    return ended(SMOKE, "nothing_lost", folder=folder)


def test_a_broken_engine_must_pass_the_faultless_smoke(tmp_path: Path) -> None:
    assert SMOKE in CASES
    assert failures(smoked(tmp_path / "1", "succeeded")) == []
    assert failures(smoked(tmp_path / "2", "running")) == [
        f"clumsy: the faultless smoke: task {T} did not succeed"]


# The command ------------------------------------------------------------------------------------

@pytest.fixture
def convicting(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """No trial is run: each engine is convicted in its first one by the checkers given here."""
    convicted: dict[str, list[str]] = {}

    def pretend(jobs: list[Job], **_: Any) -> list[Ended]:
        seen: set[str] = set()
        ends = []
        for job in jobs:
            engine, trial = job.name.split(" ")
            found = [] if engine in seen else convicted.get(engine, [])
            seen.add(engine)
            ends.append(ended(trial, *found, engine=engine))
        return ends

    monkeypatch.setattr(selftest, "side_by_side", pretend)
    return convicted


def test_the_matrix_shows_every_engine_and_the_exit_code_says_that_all_is_as_declared(
        convicting: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    convicting[NAME] = ["nothing_lost", "nothing_invented"]
    assert main(["selftest", NAME, "reference"]) == CONFORMS
    told = capsys.readouterr().out
    assert [word for word in ("clumsy", "1*", "1+", "reference") if word not in told] == []
    assert "1 of 1 broken engines caught as declared, 0 failures" in told


def test_an_engine_that_escapes_is_told_by_name_and_by_exit_code(
        convicting: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", NAME, "--json"]) == VIOLATED
    told = json.loads(capsys.readouterr().out)
    assert told["failures"] == ["clumsy: nothing_lost did not convict it, and must"]
    (engine,) = told["engines"]
    assert (engine["caught_by"], engine["also"]) == (["nothing_lost"], ["nothing_invented"])
    assert engine["trials"] > len(CASES)


def test_an_unknown_engine_is_answered_with_the_known_ones(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "nonsense"]) == INPUT
    told = capsys.readouterr().err
    assert "no engine 'nonsense'" in told
    assert all(name in told for name in ("reference", *DEFECTS))


def test_a_scenario_that_cannot_be_run_is_told_and_an_error_in_ci(
        convicting: dict[str, list[str]], capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable, value in (("XDG_CACHE_HOME", str(tmp_path)), ("PATH", str(tmp_path))):
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("DTQ_TOXIPROXY_URL", raising=False)
    convicting[NAME] = ["nothing_lost"]
    assert main(["selftest", NAME]) == CONFORMS
    assert "not run: submission_reply_lost: there is no Toxiproxy" in capsys.readouterr().out
    monkeypatch.setenv("CI", "true")
    assert main(["selftest", NAME, "--json"]) == INPUT
    assert "submission_reply_lost" in json.loads(capsys.readouterr().out)["not_run"]

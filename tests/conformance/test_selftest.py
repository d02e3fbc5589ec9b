"""The selftest: an engine that is not convicted as it declares is a failure, and so is the
reference when anything is said against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dtq_conformance import run as run_module
from dtq_conformance import selftest, shown
from dtq_conformance.__main__ import main
from dtq_conformance.cases import CASES
from dtq_conformance.checkers import CHECKERS
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

CONVICTS = "a_killed_holder_is_replaced"
"""The trial in which engines are convicted here."""


ASK = selftest._scenarios


@pytest.fixture(scope="module")
def scenarios() -> tuple[list[str], dict[str, str]]:
    """What can be run here, asked once."""
    return ASK()


@pytest.fixture
def convicting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
               scenarios: tuple[list[str], dict[str, str]]) -> dict[str, list[str]]:
    """No trial is run: each engine is convicted in that one by the checkers given here. Nothing
    is recorded of any."""
    convicted: dict[str, list[str]] = {}

    def pretend(jobs: list[Job], *, keep: Callable[[Ended], None], **_: Any) -> list[Ended]:
        ends = []
        for job in jobs:
            if job.name == convicted.get("interrupted by"):
                raise KeyboardInterrupt
            engine, trial = job.name.split(" ")
            found = convicted.get(engine, []) if trial == CONVICTS else []
            folder = Path(job.argv[job.argv.index("--out") + 1]) / trial
            folder.mkdir(parents=True, exist_ok=True)
            write(folder / "history.jsonl", header(), flat([look(T, "succeeded")]))
            ends.append(ended(trial, *found, engine=engine, folder=folder))
            (folder / "verdict.json").write_bytes(msgspec.json.encode(ends[-1].verdict))
            keep(ends[-1])
        return ends

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "default_out", lambda: tmp_path / "results")
    monkeypatch.setattr(selftest, "side_by_side", pretend)
    monkeypatch.setattr(selftest, "_scenarios", lambda: scenarios)
    monkeypatch.setattr(shown, "read", dict)
    return convicted


@pytest.fixture
def recorded(convicting: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trials that convicted the engine before."""
    trials = [CONVICTS]
    monkeypatch.setattr(shown, "read", lambda: {NAME: {"nothing_lost": trials}})
    convicting[NAME] = ["nothing_lost"]
    return trials


def told_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `--json` tells of the only engine that was judged."""
    (engine,) = json.loads(capsys.readouterr().out)["engines"]
    return dict(engine)


def test_an_engine_goes_through_the_smoke_what_convicted_it_and_a_few_that_are_drawn(
        recorded: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", NAME, "--json", "--sample", "3", "--seed", "1"]) == CONFORMS
    first = told_of(capsys)
    assert first["recorded"] == {CONVICTS: ["nothing_lost"]}
    assert len(first["run"]) == 5
    assert {SMOKE, CONVICTS} <= set(first["run"])
    assert set(first["run"]) & set(first["left_out"]) == set()
    assert len(first["run"] + first["left_out"]) > len(CASES)
    assert main(["selftest", NAME, "--json", "--sample", "3", "--seed", "2"]) == CONFORMS
    assert told_of(capsys)["run"] != first["run"]


@pytest.mark.parametrize("words", [[NAME, "--all"], ["reference"]], ids=" ".join)
def test_the_reference_goes_through_everything_and_so_does_whoever_is_asked_to(
        recorded: list[str], capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["selftest", *words, "--json"]) == CONFORMS
    told = told_of(capsys)
    assert told["left_out"] == []
    assert set(CASES) < set(told["run"])


def test_an_engine_without_a_record_goes_through_everything(
        convicting: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    convicting[NAME] = ["nothing_lost"]
    assert main(["selftest", NAME, "--json"]) == CONFORMS
    assert told_of(capsys)["left_out"] == []


def test_a_trial_that_does_not_convict_any_more_is_a_failure(
        recorded: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    recorded.append("higher_levels_come_first")
    assert main(["selftest", NAME]) == VIOLATED
    assert ("clumsy: higher_levels_come_first does not convict it by nothing_lost any more, as it "
            "did when shown_in.json was written") in capsys.readouterr().out


def test_a_trial_that_convicts_only_now_and_then_is_run_again_with_another_seed(
        recorded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[dict[str, str]] = []
    convicts, pretend = {3: ["nothing_lost"]}, selftest.side_by_side

    def now_and_then(jobs: list[Job], **options: Any) -> list[Ended]:
        rounds.append({job.name: job.argv[-1] for job in jobs})
        found = convicts.get(len(rounds), [])
        return [replace(each, verdict=ended("t", *found).verdict) if CONVICTS in each.name else each
                for each in pretend(jobs, **options)]

    monkeypatch.setattr(selftest, "side_by_side", now_and_then)
    assert main(["selftest", NAME]) == CONFORMS
    name = f"{NAME} {CONVICTS}"
    assert [list(each) for each in rounds[1:]] == [[name], [name]]
    assert len({each[name] for each in rounds}) == 3
    rounds.clear()
    convicts.clear()
    assert main(["selftest", NAME]) == VIOLATED


def test_the_matrix_shows_what_was_not_run(recorded: list[str],
                                           capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", NAME, "--sample", "2", "--seed", "8"]) == CONFORMS
    told = capsys.readouterr().out
    (row,) = [line.split() for line in told.splitlines() if line.strip().startswith(NAME)]
    assert row[1].startswith("4/")
    assert (row.count("1*"), row.count("?+"), row.count("?")) == (1, 1, len(CHECKERS) - 2)
    assert "trials were not run: for each engine 2 were drawn, with seed 8," in told


def test_a_whole_selftest_records_the_trials_that_convicted_the_quickest_first(
        convicting: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr(shown, "write", written.append)
    convicting[NAME] = ["nothing_lost", "nothing_invented"]
    assert main(["selftest", NAME, "reference", "--all", "--write-shown"]) == CONFORMS
    assert written == [{NAME: {"nothing_lost": [CONVICTS]}}]
    assert main(["selftest", NAME, "--write-shown"]) == INPUT
    slow = replace(ended("a", "nothing_lost"), took_s=2.0)
    quick = replace(ended("b", "nothing_lost"), took_s=1.0)
    assert selftest.shown_of(engine_of(NAME, [slow, quick])) == {"nothing_lost": ["b", "a"]}


def test_an_engine_that_its_checker_did_not_convict_is_not_recorded(
        convicting: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr(shown, "write", written.append)
    assert main(["selftest", NAME, "--all", "--write-shown"]) == VIOLATED
    assert written == [{}]


def test_an_interrupted_selftest_goes_on_with_what_it_was_asked_for(
        convicting: dict[str, list[str]], tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    convicting[NAME] = ["nothing_lost"]
    convicting["interrupted by"] = f"{NAME} {[*CASES][-1]}"  # type: ignore[assignment]
    assert main(["selftest", NAME, "--all", "--json", "--seed", "3", "--out", str(tmp_path)]) == 130
    (folder,) = tmp_path.glob("*-selftest-*")
    assert f"--resume {folder}" in capsys.readouterr().err
    done = {path.name for path in (folder / NAME).iterdir()}
    del convicting["interrupted by"]
    assert main(["selftest", "--resume", str(folder), "--json"]) == CONFORMS
    told = told_of(capsys)
    assert set(CASES) - {[*CASES][-1]} == done < set(told["run"])
    assert len(told["run"]) == len(set(told["run"]))


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
    monkeypatch.setattr(selftest, "_scenarios", ASK)
    convicting[NAME] = ["nothing_lost"]
    assert main(["selftest", NAME]) == CONFORMS
    assert "not run: submission_reply_lost: there is no Toxiproxy" in capsys.readouterr().out
    monkeypatch.setenv("CI", "true")
    assert main(["selftest", NAME, "--json"]) == INPUT
    assert "submission_reply_lost" in json.loads(capsys.readouterr().out)["not_run"]

"""`dtq-chaos run`: real faults on the real reference, and no verdict without them."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dtq_chaos import run_scenarios
from dtq_chaos.__main__ import main
from dtq_chaos.run_scenarios import not_run
from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance.exits import CONFORMS, INPUT, UNKNOWN, VIOLATED, in_ci
from dtq_conformance.history import Fault, read
from dtq_conformance.run import exit_code
from dtq_conformance.scheduler import Ended
from dtq_conformance.verdict import RunVerdict

from tests.conformance import scheduled
from tests.conformance.scheduled import run, runs


@pytest.fixture
def no_toxiproxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DTQ_TOXIPROXY_URL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


# Real runs --------------------------------------------------------------------------------------

@pytest.mark.slow
def test_without_its_faults_no_scenario_says_anything_but_unknown(tmp_path: Path) -> None:
    done = run("dtq_chaos", "run", "--all", "--without-faults", "--jobs", "6", "--json", "--out",
               str(tmp_path))
    found, skipped = runs(done), json.loads(done.stdout)["not_run"]
    assert {**found, **skipped}.keys() == SCENARIOS.keys()
    told = {name: (each["status"], each["problem"]) for name, each in found.items()}
    assert told == dict.fromkeys(found, ("unknown", ""))
    assert done.returncode == (INPUT if skipped and in_ci() else UNKNOWN)
    for each in found.values():
        assert each["verdict"]["marks_missing"]
        assert each["verdict"]["repeat"].endswith(" --without-faults")
        assert not read(Path(each["folder"]) / "history.jsonl").of(Fault)


@pytest.mark.slow
def test_the_canary_is_convicted_of_losing_the_task_that_was_deleted(tmp_path: Path) -> None:
    done = run("dtq_chaos", "run", "canary", "--json", "--out", str(tmp_path))
    assert done.returncode == VIOLATED, done.stdout + done.stderr
    canary = runs(done)["canary"]
    history = read(Path(canary["folder"]) / "history.jsonl")
    (deleted,) = {record.detail["task_id"] for record in history.of(Fault)}
    assert canary["verdict"]["convicted_by"] == ["nothing_lost"]
    accused = {finding["task_id"] for row in canary["verdict"]["rows"]
               for finding in row["findings"] if finding["status"] == "violated"}
    assert accused == {deleted}
    assert deleted in canary["verdict"]["sentence"]
    assert canary["as_expected"]
    ended = Ended("canary", VIOLATED, None, _verdict(canary))
    assert exit_code([ended]) == CONFORMS


def _verdict(told: dict[str, Any]) -> RunVerdict:
    return msgspec.convert(told["verdict"], RunVerdict)


@pytest.mark.slow
def test_however_the_scheduler_is_ended_no_process_and_no_folder_is_left(tmp_path: Path) -> None:
    ways: dict[str, tuple[signal.Signals, int]] = {
        "interrupted": (signal.SIGINT, 130), "killed": (signal.SIGKILL, -9)}
    schedulers = {way: scheduled.begin(tmp_path / way, "dtq_chaos",
                                       "worker_stopped_past_its_lease") for way in ways}
    for scheduler in schedulers.values():
        scheduler.await_workers()
    for way, (number, _) in ways.items():
        schedulers[way].process.send_signal(number)
    for way, (_, code) in ways.items():
        schedulers[way].process.communicate(timeout=scheduled.LIMIT_S)
        assert (way, schedulers[way].process.returncode) == (way, code)
        schedulers[way].await_nothing_left()


# Without Toxiproxy ------------------------------------------------------------------------------

NEEDING = [name for name, each in SCENARIOS.items() if each.needs_toxiproxy]


def test_only_scenarios_that_need_toxiproxy_are_not_run_without_it(no_toxiproxy: None) -> None:
    found = not_run(list(SCENARIOS))
    assert list(found) == NEEDING
    assert all("there is no Toxiproxy server" in reason for reason in found.values())
    assert not_run([name for name in SCENARIOS if name not in NEEDING]) == {}


@pytest.fixture
def convicted_canary(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No trial is run: the canary is convicted, all else holds. Returns what would have run."""
    asked: list[str] = []

    def pretend(_: object, names: list[str], *__: object, **___: object) -> list[Ended]:
        asked.extend(names)
        return [Ended(name, code, None, RunVerdict(
            run_id="r", room="chaos", trial=name, target="t", broker="b", seed=1, status=status,
            sentence="Found.", convicted_by=(), rows=(), marks_missing=(), repeat="again",
            expects=SCENARIOS[name].expects))
            for name in names
            for code, status in [(1, "violated") if name == "canary" else (0, "holds")]]

    monkeypatch.setattr(run_scenarios, "run_all", pretend)
    return asked


def test_a_scenario_that_cannot_be_run_is_visible_and_counted_and_leaves_the_exit_code(
        no_toxiproxy: None, convicted_canary: list[str],
        capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--all"]) == CONFORMS
    out, err = capsys.readouterr()
    assert convicted_canary == [name for name in SCENARIOS if name not in NEEDING]
    assert f"{len(NEEDING)} not run" in out
    assert [line.split(": ")[:2] for line in err.splitlines()] == [["not run", name]
                                                                  for name in NEEDING]


def test_a_scenario_that_cannot_be_run_is_an_error_in_ci_in_the_json_too(
        no_toxiproxy: None, convicted_canary: list[str], capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert main(["run", "--all", "--json"]) == INPUT
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], list(told["not_run"])) == (INPUT, NEEDING)


def test_where_nothing_could_be_run_nothing_is_known(
        no_toxiproxy: None, convicted_canary: list[str]) -> None:
    assert main(["run", *NEEDING]) == UNKNOWN


def test_a_canary_alone_is_violated_and_among_all_is_as_it_must_be(
        convicted_canary: list[str], capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_scenarios, "not_run", lambda _: {})
    assert main(["run", "canary"]) == VIOLATED
    assert main(["run", "--all"]) == CONFORMS
    assert capsys.readouterr().out.count("convicted, as it must be") == 2


# Bad input --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("arguments", "parts"), [
    ([], ["Name the scenarios to run, or say --all", *SCENARIOS]),
    (["--all", "canary"], ["Name the scenarios to run, or say --all"]),
    (["nonsense"], ["no scenario 'nonsense'", *SCENARIOS]),
    (["canary", "--target", "nonsense"], ["no target 'nonsense'", "reference"]),
    (["canary", "--target", "broken:nonsense"], ["no broken engine 'nonsense'", "never_renews"]),
    (["canary", "--broker", "nonsense"], ["no broker 'nonsense'", "embedded"]),
    (["canary", "--broker", "redis://127.0.0.1:1"], ["127.0.0.1:1 cannot be reached"]),
])
def test_a_bad_question_is_one_sentence_and_nothing_is_run(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str],
        parts: list[str]) -> None:
    assert main(["run", *arguments, "--out", str(tmp_path / "runs")]) == INPUT
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert [part for part in parts if part not in err] == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run", "--no-such-option"],
                                       ["run", "canary", "--jobs", "0"], ["replay"]], ids=str)
def test_bad_usage_has_the_exit_code_of_bad_input(arguments: list[str]) -> None:
    assert main(arguments) == INPUT

"""`dtq-chaos list`: every scenario, and the reason why one cannot be run here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dtq_chaos.__main__ import main
from dtq_chaos.scenarios import SCENARIOS


@pytest.fixture
def no_toxiproxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DTQ_TOXIPROXY_URL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_every_scenario_is_told_with_its_story_and_its_clauses(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    told = capsys.readouterr().out
    for name, scenario in SCENARIOS.items():
        assert f"{name}\n    {scenario.story}\n    {', '.join(scenario.clauses)}\n" in told


def test_as_json_it_says_what_each_expects_and_why_one_is_not_run(
        no_toxiproxy: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    told = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(told) == list(SCENARIOS)
    for name, scenario in SCENARIOS.items():
        assert told[name]["expects"] == scenario.expects
        assert bool(told[name]["not_run"]) == scenario.needs_toxiproxy


def test_what_cannot_be_run_here_is_marked(
        no_toxiproxy: None, capsys: pytest.CaptureFixture[str]) -> None:
    main(["list"])
    needing = [each for each in SCENARIOS.values() if each.needs_toxiproxy]
    assert needing
    assert capsys.readouterr().out.count("    not run here: there is no Toxiproxy server") == len(
        needing)

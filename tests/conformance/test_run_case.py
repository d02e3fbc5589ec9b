"""`dtq-conformance case`: what the scheduler starts for one case."""

from __future__ import annotations

from pathlib import Path

import pytest
from dtq_conformance.__main__ import main
from dtq_conformance.cases import CASES
from dtq_conformance.exits import INPUT


def test_an_unknown_case_is_answered_with_the_known_ones(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "nonsense"]) == INPUT
    told = capsys.readouterr().err
    assert "There is no case 'nonsense'" in told
    assert all(name in told for name in CASES)


def test_a_case_that_is_not_named_is_bad_usage() -> None:
    assert main(["case"]) == INPUT


@pytest.mark.parametrize(("option", "value", "sentence"), [
    ("--target", "nonsense", "There is no target 'nonsense'"),
    ("--broker", "nonsense", "There is no broker 'nonsense'")])
def test_a_bad_question_prints_no_folder(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
        option: str, value: str, sentence: str) -> None:
    monkeypatch.setattr("dtq_conformance.run.end_with_parent", lambda: None)
    assert main(["case", "everything_runs_once", option, value, "--out", str(tmp_path)]) == INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err

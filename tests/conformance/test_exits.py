"""How a command ends: every way out of `main` has its own exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from dtq_conformance import exits
from dtq_conformance.exits import InputError, dispatch, run_command

COMMAND = '''
"""A command."""
def add_arguments(parser):
    parser.add_argument("code", type=int)
def execute(arguments):
    return arguments.code
'''


def raising(error: BaseException) -> int:
    def main(_: Sequence[str]) -> int:
        raise error

    return run_command(main, [])


@pytest.mark.parametrize(("error", "code"), [
    (InputError("no"), 4), (KeyboardInterrupt(), 130), (ZeroDivisionError(), 5),
    (ImportError("gone"), 5), (MemoryError(), 5), (SystemExit(), 0), (SystemExit(4), 4),
    (SystemExit("a message"), 5)], ids=repr)
def test_each_way_to_end_has_its_code(error: BaseException, code: int) -> None:
    assert raising(error) == code


def test_an_input_error_is_its_sentence_alone(capsys: pytest.CaptureFixture[str]) -> None:
    raising(InputError("There is no such thing."))
    assert capsys.readouterr() == ("", "There is no such thing.\n")


def test_an_uncaught_exception_shows_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    raising(ZeroDivisionError("by what"))
    assert "Traceback" in (told := capsys.readouterr().err)
    assert "ZeroDivisionError: by what" in told


def test_the_value_of_main_is_the_code() -> None:
    assert run_command(lambda argv: len(argv), ["a", "b"]) == 2


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, str]]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "good_command_of_a_test.py").write_text(COMMAND)
    sys.modules.pop("good_command_of_a_test", None)
    return {"good": ("good_command_of_a_test", "end with a code")}


@pytest.mark.parametrize(("argv", "code"), [
    (["good", "3"], 3), (["good", "0"], 0), ([], 4), (["bad"], 4), (["good"], 4),
    (["good", "three"], 4), (["good", "1", "--no-such"], 4), (["--help"], 0),
    (["good", "--help"], 0)])
def test_a_subcommand_ends_with_its_own_code_and_bad_usage_with_4(
        commands: dict[str, tuple[str, str]], argv: list[str], code: int) -> None:
    assert dispatch("prog", "purpose", commands, argv) == code


def test_bad_usage_names_what_is_known(commands: dict[str, tuple[str, str]],
                                       capsys: pytest.CaptureFixture[str]) -> None:
    dispatch("prog", "purpose", commands, ["bad"])
    told = capsys.readouterr().err
    assert "'bad'" in told
    assert "good" in told


@pytest.mark.parametrize("text", ["import no_such_module_at_all", "1 / 0", "def f(:"])
def test_a_command_that_cannot_be_imported_is_the_harness_failing(
        commands: dict[str, tuple[str, str]], tmp_path: Path, text: str) -> None:
    (tmp_path / "bad_command_of_a_test.py").write_text(text)
    sys.modules.pop("bad_command_of_a_test", None)
    commands["bad"] = ("bad_command_of_a_test", "break")
    assert dispatch("prog", "purpose", commands, ["bad", "0"]) == exits.HARNESS
    assert dispatch("prog", "purpose", commands, ["good", "0"]) == 0


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("1", False), (None, False)])
def test_only_ci_true_is_ci(monkeypatch: pytest.MonkeyPatch, value: str | None,
                            expected: bool) -> None:
    monkeypatch.delenv("CI", raising=False)
    if value is not None:
        monkeypatch.setenv("CI", value)
    assert exits.in_ci() is expected

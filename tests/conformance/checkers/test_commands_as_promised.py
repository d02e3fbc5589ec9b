"""commands_as_promised: answers on standard output, messages on standard error, an exit code."""

from __future__ import annotations

from dtq_conformance.checkers.commands_as_promised import check

from tests.conformance.exchanges import command, expects
from tests.conformance.histories import accuses, says


def test_what_a_case_expected_is_compared_with_the_answer() -> None:
    asked = [expects("CLI-04", 1, code="TASK_NOT_FOUND")]
    good = command("get", "x", status=1, body="", messages="dtq: TASK_NOT_FOUND: no.",
                   expects=asked)
    assert says(check, good)["CLI-04"] == "holds 1"
    bad = command("get", "x", status=1, body="", messages="dtq: no.", expects=asked)
    assert says(check, bad)["CLI-04"] == "violated 1"


def test_an_answer_is_json_and_a_refusal_prints_none() -> None:
    assert says(check, command("list", body=[]))["CLI-02"] == "holds 1"
    assert says(check, command("get", status=1, body="", messages="no"))["CLI-02"] == "holds 1"
    for bad in (command("list", body="done"), command("list", body=""),
                command("get", status=1, body={"code": "X"}, messages="no"),
                command("get", status=1, body="")):
        assert says(check, bad)["CLI-02"] == "violated 1"
    assert accuses(check, "CLI-02", command("list", body="done")) == (
        "The command 'list' exited with code 0 at 105 ms, and what it printed is not JSON: "
        '"done".')


def test_help_is_no_answer() -> None:
    assert "CLI-02" not in says(check, command("get", "--help", body="usage: dtq get"))


def test_an_exit_code_is_one_of_four() -> None:
    assert says(check, command("get", status=3, body="", messages="no"))["CLI-03"] == "holds 1"
    crashed = command("get", status=-6, body="", messages="Aborted")
    assert says(check, crashed)["CLI-03"] == "violated 1"

"""`dtq-conformance tamper`: one lie in a well-formed history, which the judge must find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dtq_conformance.__main__ import main
from dtq_conformance.history import read, write

from tests.conformance.histories import (
    T,
    U,
    V,
    born,
    dead,
    fault,
    flat,
    header,
    killed,
    letter,
    letters,
    look,
    mark,
    ran,
    start,
    submit,
)

STORY = flat([
    submit(), submit(U), submit(V, steps=[{"fail": "permanent"}]), born(1, 2), ran(20, 30, by=2),
    start(100, U), fault("killed", 150, 160, worker=1), killed(1, 151),
    ran(1300, 1400, U, attempt=2, by=2), ran(40, 50, V, "failed", by=2), look(by=2),
    look(U, attempt=2, by=2), dead(V), letters(letter(V)), mark()])
"""T is executed once, U twice, V fails for good; nothing is wrong with any of them."""


@pytest.fixture
def held(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    write(path, header(clauses=["DLV-03"]), STORY)
    assert main(["judge", str(path)]) == 0
    return path


@pytest.mark.parametrize(("lie", "task_id", "checkers"), [
    ("--drop-execution", T, {"nothing_lost"}), ("--drop-execution", U, {"nothing_lost"}),
    ("--drop-execution", V, {"nothing_lost"}),
    ("--repeat", T, {"duplicates_justified", "attempts_bounded"}),
    ("--repeat", U, {"duplicates_justified", "attempts_bounded"}),
    ("--repeat", V, {"attempts_bounded"}),
    ("--swap-holder", T, {"one_terminal_state"}), ("--swap-holder", U, {"one_terminal_state"})])
def test_each_lie_is_found_by_its_checkers_which_name_the_task(
        held: Path, capsys: pytest.CaptureFixture[str], lie: str, task_id: str,
        checkers: set[str]) -> None:
    out = held.parent / "altered.jsonl"
    assert main(["tamper", str(held), lie, task_id, "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["judge", str(out), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    convicted = {row["checker"] for row in verdict["rows"] for finding in row["findings"]
                 if finding["status"] == "violated" and finding["task_id"] == task_id}
    assert checkers <= convicted
    assert task_id in verdict["sentence"]


def test_only_the_lines_of_one_execution_are_altered(held: Path) -> None:
    out = held.parent / "altered.jsonl"
    for lie, lines in (("--drop-execution", -2), ("--repeat", 2), ("--swap-holder", 0)):
        main(["tamper", str(held), lie, U, "--out", str(out)])
        before, after = read(held), read(out)
        assert after.header == before.header
        assert len(after.records) == len(before.records) + lines
        assert len(set(map(repr, before.records)) - set(map(repr, after.records))) <= 2


def test_the_altered_history_lies_beside_the_first_by_default(
        held: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = held.read_bytes()
    capsys.readouterr()
    assert main(["tamper", str(held), "--repeat", T, "--json"]) == 0
    beside = held.parent / "history.tampered.jsonl"
    assert json.loads(capsys.readouterr().out) == {"history": str(beside)}
    assert main(["judge", str(beside)]) == 1
    assert held.read_bytes() == whole


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--drop-execution", "f" * 32], "No execution of a task"),
    (["--repeat", "nonsense"], "No execution of a task 'nonsense' is in this history"),
    (["--swap-holder", V], "does not name the holder"),
    (["--repeat", T, "--out", "SELF"], "is the history itself"),
    (["--repeat", T, "--out", "NOWHERE"], "cannot be written")])
def test_what_cannot_be_done_is_one_sentence_and_exit_code_4(
        held: Path, capsys: pytest.CaptureFixture[str], arguments: list[str],
        complaint: str) -> None:
    capsys.readouterr()
    places = {"SELF": str(held), "NOWHERE": str(held.parent / "no" / "x")}
    assert main(["tamper", str(held), *(places.get(word, word) for word in arguments)]) == 4
    err = capsys.readouterr().err
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_an_execution_that_no_record_speaks_of_cannot_be_dropped_to_any_effect(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    write(path, header(), flat([submit(max_attempts=1), born(1), start(20), killed(1, 30),
                                dead(error_class="WorkerLost")]))
    assert main(["tamper", str(path), "--drop-execution", T]) == 4
    assert "needs no execution" in capsys.readouterr().err


WAITING = flat([
    [submit(f"{number:032x}", priority=9 - number // 5) for number in range(50)],
    born(1, at=20, concurrency=1),
    [ran(30 + 10 * number, 35 + 10 * number, f"{number:032x}") for number in range(50)],
    [look(f"{number:032x}", priority=9 - number // 5) for number in range(50)]])
"""Fifty tasks of ten levels waited before their only worker started, which took them in order."""


@pytest.fixture
def in_order(tmp_path: Path) -> Path:
    path = tmp_path / "in_order.jsonl"
    write(path, header(clauses=["PRIO-01"], claims=["priority", "delivery"]), WAITING)
    assert main(["judge", str(path)]) == 0
    return path


@pytest.mark.parametrize(("one", "other"), [(0, 49), (44, 5), (22, 27)])
def test_two_tasks_out_of_order_are_found_by_strict_priority(
        in_order: Path, capsys: pytest.CaptureFixture[str], one: int, other: int) -> None:
    out = in_order.parent / "altered.jsonl"
    assert main(["tamper", str(in_order), "--reorder", f"{one:032x}", f"{other:032x}",
                 "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["judge", str(out), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["convicted_by"] == ["strict_priority"]
    assert f"{max(one, other):032x}" in verdict["sentence"]


def test_two_tasks_whose_order_nothing_prescribes_are_not_reordered(
        in_order: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["tamper", str(in_order), "--reorder", f"{1:032x}", f"{2:032x}"]) == 4
    assert "Nothing proves that task" in capsys.readouterr().err


def test_one_lie_at_a_time(held: Path) -> None:
    assert main(["tamper", str(held)]) == 4
    assert main(["tamper", str(held), "--repeat", T, "--swap-holder", T]) == 4

"""A history is read as it was written, or refused with the reason."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from dtq_conformance.history import HistoryError, Record, read, write
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.exchanges import expects, heard, http, listened, log
from tests.conformance.histories import (
    born,
    fault,
    flat,
    gone,
    header,
    look,
    mark,
    ns,
    pid,
    ran,
    stall,
    submit,
)
from tests.conformance.histories import history as a_history

RECORDS: tuple[Record, ...] = flat([
    submit(), born(1), ran(20, 30), look(), fault("killed", 40, 50, worker=1), mark(),
    stall(60, 70), gone(1, 45, signal=9), listened(), heard("TASK_QUEUED", 15), log("secret"),
    http("GET", "/health", 200, {"status": "ok"}, expects=[expects("API-12", 200)])])


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write(tmp_path / "history.jsonl", header(), RECORDS)
    return tmp_path / "history.jsonl"


def test_a_history_is_read_as_it_was_written(written: Path) -> None:
    assert read(written) == a_history(*RECORDS)
    assert sorted(path.name for path in written.parent.iterdir()) == ["history.jsonl"]


@given(st.lists(st.sampled_from(RECORDS), max_size=20))
def test_any_records_are_read_as_they_were_written(
        tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    path = tmp_path_factory.mktemp("any") / "history.jsonl"
    write(path, header(), records)
    assert read(path).records == tuple(records)


@pytest.mark.parametrize("lines", range(len(RECORDS) + 2))
def test_a_history_cut_short_is_refused(written: Path, lines: int) -> None:
    written.write_bytes(b"".join(written.read_bytes().splitlines(keepends=True)[:lines]))
    with pytest.raises(HistoryError, match=r"cut short|is empty|header"):
        read(written)


def test_a_history_cut_within_its_last_line_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    for size in (len(whole) - 1, len(whole) - 10):
        written.write_bytes(whole[:size])
        with pytest.raises(HistoryError):
            read(written)


def test_a_line_edited_by_hand_is_refused(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b'"outcome":"ok"', b'"outcome":"failed"', 1)
                        .replace(b'"attempt":1', b'"attempt":2', 1))
    with pytest.raises(HistoryError, match=r"altered|line"):
        read(written)


def test_a_line_taken_out_is_refused(written: Path) -> None:
    lines = written.read_bytes().splitlines(keepends=True)
    written.write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(HistoryError, match="footer"):
        read(written)


def forge(path: Path, change: dict[str, object], line: int) -> None:
    """Change a line and make the footer fit, as a newer program would have written it."""
    lines = path.read_bytes().splitlines()[:-1]
    lines[line] = json.dumps(json.loads(lines[line]) | change).encode()
    body = b"".join(one + b"\n" for one in lines)
    footer = {"kind": "footer", "lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(body + json.dumps(footer).encode() + b"\n")


@pytest.mark.parametrize(("change", "line", "complaint"), [
    ({"format": 99}, 0, "format 99"), ({"mood": "good"}, 0, "line 1: .*mood"),
    ({"mood": "good"}, 3, "line 4: .*mood"), ({"kind": "rumour"}, 3, "line 4: .*rumour"),
    ({"pid": "one"}, 3, "line 4")])
def test_what_this_program_does_not_know_is_refused(
        written: Path, change: dict[str, object], line: int, complaint: str) -> None:
    forge(written, change, line)
    with pytest.raises(HistoryError, match=complaint):
        read(written)


def test_a_forged_footer_alone_changes_nothing(written: Path) -> None:
    forge(written, {}, 3)
    assert read(written) == a_history(*RECORDS)


def test_what_is_not_a_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(HistoryError, match="cannot be read"):
        read(path)
    for text in ("", "hello\n", "{}\n", "[]\n"):
        path.write_text(text)
        with pytest.raises(HistoryError):
            read(path)


def test_a_pid_that_was_given_again_belongs_to_the_younger_process() -> None:
    lived = a_history(born(1), gone(1, 50, signal=9), born(1, at=60))
    assert [lived.life_of(pid(1), ns(at)) for at in (40, 70)] == lived.lives

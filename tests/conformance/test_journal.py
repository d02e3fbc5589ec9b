"""A selftest that was interrupted goes on from its journal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from dtq_conformance.exits import InputError
from dtq_conformance.journal import NAME, Asked, Journal
from dtq_conformance.scheduler import Ended

from tests.conformance.scheduled import verdict

ASKED = Asked(engines=["reference", "clumsy"], whole=True, sample=5, seed=7, broker="embedded")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / "selftest")
    journal.begin(ASKED)
    return journal


def ended(journal: Journal, name: str) -> Ended:
    folder = journal.folder / name.replace(" ", "/")
    folder.mkdir(parents=True)
    found = verdict("violated")
    (folder / "verdict.json").write_bytes(msgspec.json.encode(found))
    return Ended(name, 1, folder, found, took_s=1.5)


def test_what_was_asked_for_and_what_has_ended_is_read_again(journal: Journal) -> None:
    noted = [ended(journal, "clumsy a"), ended(journal, "clumsy b")]
    for each in noted:
        journal.note(each)
    asked, found = Journal(journal.folder).read()
    assert (asked, found) == (ASKED, noted)
    assert [each.took_s for each in found] == [1.5, 1.5]


def test_what_has_no_verdict_is_run_again(journal: Journal) -> None:
    journal.note(Ended("clumsy a", 5, problem="it broke"))
    gone = ended(journal, "clumsy b")
    journal.note(gone)
    assert gone.folder is not None
    (gone.folder / "verdict.json").unlink()
    cut = ended(journal, "clumsy c")
    journal.note(cut)
    file = journal.folder / NAME
    file.write_bytes(file.read_bytes()[:-1])
    assert journal.read() == (ASKED, [])


def test_the_folder_may_be_moved(journal: Journal, tmp_path: Path) -> None:
    journal.note(ended(journal, "clumsy a"))
    moved = journal.folder.rename(tmp_path / "moved")
    (found,) = Journal(moved).read()[1]
    assert found.folder == moved / "clumsy" / "a"


@pytest.mark.parametrize("content", [None, b"", b"nonsense\n", b"{}\n"])
def test_what_is_no_journal_is_said_so(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    with pytest.raises(InputError, match=r"is no journal of a selftest .* Name the folder"):
        Journal(tmp_path).read()


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written to"):
        Journal(tmp_path / "file" / "selftest").begin(ASKED)

"""What the witness of the held tasks tells."""

from __future__ import annotations

from pathlib import Path

from dtq_load.bench.recovery import Line, in_hand, read

TEXT = "start 0 100\nstart 1 101\nend 0 100\nstart 2 200\nstart 3 100\nend 2 2"


def test_a_line_without_its_end_is_left_out(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    witness.write_text(TEXT)
    assert read(witness)[-1] == Line("start", 3, 100)
    witness.write_text("")
    assert read(witness) == []


def test_in_hand_is_what_was_begun_by_these_processes_and_ended_by_none(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    witness.write_text(TEXT)
    assert in_hand(read(witness), {100, 101}) == {1, 3}
    assert in_hand(read(witness), {200}) == {2}

"""Each mark of a broker that refuses, held and not held, on small histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from dtq_chaos import marks_of_broker_trouble as marks
from dtq_conformance.history import Record

from tests.chaos.test_marks_of_delivery import bite
from tests.conformance.histories import T, U, V, history, ran, submit


def refusing(*said: str, to: int = 2500) -> list[Record]:
    return bite("exhaust_memory", 500, to, refused=list(said))


@pytest.mark.parametrize(("story", "held"), [
    ([refusing("OOM", "OOM")], True), ([refusing("OOM", "")], False), ([refusing("OOM")], False),
    ([refusing("READONLY", "READONLY")], False), ([], False),
    ([bite("refuse_writes", 500, 2500, refused=["OOM", "OOM"])], False)])
def test_a_write_was_refused_with_this_word_at_both_ends(
        story: Sequence[Any], held: bool) -> None:
    read = marks.refused_throughout("exhaust_memory", word="OOM")
    assert read(history(*story)).held == held


def test_what_was_said_is_told() -> None:
    read = marks.refused_throughout("exhaust_memory", word="OOM")
    assert read(history(refusing("OOM", "OOM"))).sentence == (
        "A write of the harness's own was refused: OOM and OOM.")
    assert read(history()).sentence == "A write of the harness's own was refused: never."


ASKED = submit(V, 900)
BUSY = [ran(100, 800), ran(100, 2600, U, by=2)]
"""Two workers were executing when it began; one of the handlers ended meanwhile."""


@pytest.mark.parametrize(("story", "held"), [
    ([refusing("OOM", "OOM"), ASKED, BUSY], True),
    ([refusing("OOM", "OOM"), submit(V, 400), BUSY], False),
    ([refusing("OOM", "OOM"), ASKED, BUSY[0]], False),
    ([refusing("OOM", "OOM"), ASKED, ran(100, 2600), BUSY[1]], False),
    ([refusing("OOM", "OOM"), ASKED, ran(600, 800, T), BUSY[1]], False),
    ([refusing("OOM", "OOM", to=700), ASKED, BUSY], False), ([ASKED, BUSY], False)])
def test_holders_worked_through_it_and_submissions_went_on(
        story: Sequence[Any], held: bool) -> None:
    read = marks.worked_through("exhaust_memory", holders=2, ends=1)
    assert read(history(*story)).held == held

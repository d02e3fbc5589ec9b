"""How numbers and lists are printed."""

from __future__ import annotations

import pytest
from dtq_reports.words import NARROW_SPACE, count, listed, number


def test_thousands_are_set_apart_by_a_narrow_space() -> None:
    assert number(2431) == f"2{NARROW_SPACE}431"
    assert number(999) == "999"


@pytest.mark.parametrize(("value", "words"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks")])
def test_a_noun_follows_its_number(value: int, words: str) -> None:
    assert count(value, "task") == words


@pytest.mark.parametrize(("items", "words"), [
    ([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"),
    (["a", "b", "c", "d"], "a, b, c and d")])
def test_a_list_is_set_as_a_sentence(items: list[str], words: str) -> None:
    assert listed(items) == words


def test_what_is_left_out_of_a_long_list_is_counted() -> None:
    assert listed(["a", "b", "c", "d"], at_most=2) == "a, b and 2 more"

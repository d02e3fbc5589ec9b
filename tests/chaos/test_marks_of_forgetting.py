"""Each mark of what the broker forgot, held and not held, on small histories."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from dtq_chaos import marks_of_forgetting as marks
from dtq_chaos.faults import FAULTS
from dtq_conformance.history import Record

from tests.conformance.histories import fault, history


def bite(name: str, **detail: Any) -> list[Record]:
    return [msgspec.structs.replace(record, fault=name, detail=detail)
            for record in fault(FAULTS[name].effect, 500, 600)]


def flushed(*changes: dict[str, int]) -> list[Record]:
    """Flushes that were as they should be but for these changes."""
    return bite("flush_scripts", flushes=[
        {"before": 4, "after": 0, "again": 2, "unfinished": 9, **change} for change in changes])


def forgot(**changes: int) -> list[Record]:
    return bite("forget_groups", **{
        "groups": 10, "left": 0, "in_hand": 4, "waiting": 20, **changes})


def test_scripts_were_forgotten_each_time_and_known_again() -> None:
    found = marks.scripts_were_forgotten(times=2)(history(flushed({}, {})))
    assert found.held
    assert found.sentence == ("2 of 2 times the server forgot the scripts that are called, and "
                              "knew some again: 4 to 0 to 2, 4 to 0 to 2.")


@pytest.mark.parametrize(("changes", "why"), [
    ([{}], "it was done once"), ([{}, {"before": 0}], "there were none"),
    ([{}, {"after": 1}], "one was left"), ([{"again": 0}, {}], "nobody loaded one again"),
    ([{}, {"unfinished": 0}], "all was done"), ([{}, {}, {}], "it was done three times"),
    ([], "it was not done")])
def test_scripts_that_were_not_forgotten_each_time_are_no_mark(
        changes: list[dict[str, int]], why: str) -> None:
    found = marks.scripts_were_forgotten(times=2)(history(flushed(*changes)))
    assert not found.held, f"{why}: {found.sentence}"
    assert found.sentence.endswith(".")


def test_without_a_fault_nothing_was_forgotten() -> None:
    assert not marks.scripts_were_forgotten(times=2)(history()).held
    assert not marks.groups_were_forgotten()(history()).held


def test_groups_were_forgotten_with_tasks_in_hand_and_waiting() -> None:
    found = marks.groups_were_forgotten()(history(forgot()))
    assert found.held
    assert found.sentence == ("The server forgot: 10 groups became 0 with 4 tasks in hand and 20 "
                              "waiting.")


@pytest.mark.parametrize("change", [
    {"groups": 9}, {"left": 1}, {"in_hand": 0}, {"waiting": 0}])
def test_groups_that_led_to_nothing_or_were_left_are_no_mark(change: dict[str, int]) -> None:
    found = marks.groups_were_forgotten()(history(forgot(**change)))
    assert not found.held, found.sentence

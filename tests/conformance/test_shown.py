"""The few trials that convict each broken engine are known, and are the ones that it is put
through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance import shown
from dtq_conformance.cases import CASES
from dtq_conformance.targets.broken import DEFECTS

TRIALS = [*CASES, *SCENARIOS]


def test_each_broken_engine_has_a_record_that_is_enough_and_nobody_else_has() -> None:
    recorded = shown.read()
    assert [name for name, defect in DEFECTS.items()
            if shown.enough(recorded.get(name, {}), defect.caught_by, TRIALS) is None] == [], \
        "dtq-conformance selftest NAME --all --write-shown records it"
    assert set(recorded) - set(DEFECTS) == set()


def test_recorded_trials_and_checkers_are_there() -> None:
    for name, by in shown.read().items():
        assert set(by) <= set(DEFECTS[name].caught_by), name
        assert {trial for trials in by.values() for trial in trials} <= set(TRIALS), name


@pytest.mark.parametrize(("recorded", "enough"), [
    ({"x": ["a"]}, {"a": ["x"]}),
    ({"x": ["a", "b", "c", "d"]}, {"a": ["x"], "b": ["x"], "c": ["x"]}),
    ({"x": ["a", "b"], "y": ["b", "a"]}, {"a": ["x", "y"], "b": ["x", "y"]}),
    ({"x": ["a", "d"], "y": ["b"]}, {"a": ["x"], "b": ["y"], "d": ["x"]}),
    ({"w": ["a"], "x": ["b"], "y": ["c"], "z": ["d"]},
     {"a": ["w"], "b": ["x"], "c": ["y"], "d": ["z"]}),
    ({"x": ["gone", "b"]}, {"b": ["x"]}),
    ({"x": ["gone"]}, None),
    ({"x": ["a"], "y": []}, None),
])
def test_a_few_trials_are_enough_if_each_that_must_convict_does(
        recorded: Mapping[str, Sequence[str]], enough: dict[str, list[str]] | None) -> None:
    assert shown.enough(recorded, list(recorded), "abcd") == enough


def test_without_a_record_nothing_is_enough() -> None:
    assert shown.enough({}, ["x"], "abcd") is None


def test_the_sample_is_drawn_by_seed_and_engine_and_keeps_the_order() -> None:
    trials = [f"t{number}" for number in range(100)]
    drawn = shown.sample("one", trials, 5, 1)
    assert drawn == shown.sample("one", trials, 5, 1) == sorted(drawn, key=trials.index)
    assert len(set(drawn)) == 5
    assert drawn != shown.sample("other", trials, 5, 1)
    assert drawn != shown.sample("one", trials, 5, 2)
    assert shown.sample("one", ["a", "b"], 5, 1) == ["a", "b"]
    assert shown.sample("one", trials, 0, 1) == []


def test_what_is_recorded_anew_replaces_what_is_recorded_of_that_engine_and_keeps_the_steady_first(
        tmp_path: Path) -> None:
    file = tmp_path / "shown.json"
    shown.write({"one": {"x": ["a", "b", "c"]}, "two": {"y": ["d"]}}, file)
    shown.write({"one": {"x": ["d", "c", "a"]}}, file)
    assert shown.read(file) == {"one": {"x": ["c", "a", "d"]}, "two": {"y": ["d"]}}
    shown.write({"one": {"x": [f"t{number}" for number in range(99)]}}, file)
    assert len(shown.read(file)["one"]["x"]) == shown.KEPT

"""What is taken for a target, and what for an answer of one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dtq_conformance.target import (
    CLAIMS,
    TaskView,
    UnknownTarget,
    faults_in,
    lacks_of,
    load_target,
    preloaded_for,
)
from dtq_conformance.targets import TARGETS
from dtq_conformance.targets.broken import DEFECTS
from dtq_conformance.targets.reference import REFERENCE

from tests.conformance.miniature import view

OWN = '''
"""A target of one's own."""
class Kind:
    name = "own"
    claims = frozenset({"delivery"})
    recovery_ms = 1000
    def open(self, site):
        return None
KIND = Kind()
NOTHING = object()
class Half:
    name = "half"
    recovery_ms = "soon"
    claims = {"delivery", "magic", "wonders"}
HALF = Half()
class Listing(Kind):
    claims = "delivery"
    open = None
    recovery_ms = 0
    preload = "own"
LISTING = Listing()
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, which is not on the path yet."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_target_of_a_test.py").write_text(OWN)
    (tmp_path / "broken_target_of_a_test.py").write_text("1 / 0")
    sys.modules.pop("own_target_of_a_test", None)
    return "own_target_of_a_test"


def refused(name: str) -> str:
    with pytest.raises(UnknownTarget) as caught:
        load_target(name)
    return str(caught.value)


def test_the_known_targets_are_found_by_name() -> None:
    assert load_target("reference") is TARGETS["reference"]
    for name in DEFECTS:
        assert load_target(f"broken:{name}").name == f"broken:{name}"


def test_a_target_of_ones_own_is_found_in_the_current_folder(own: str) -> None:
    assert load_target(f"{own}:KIND").name == "own"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    told = refused("nonsense")
    for known in ("'nonsense'", "reference", "broken:NAME", "module:attribute"):
        assert known in told


@pytest.mark.parametrize("name", ["broken:nonsense", "broken:"])
def test_an_unknown_broken_engine_is_answered_with_the_known_ones(name: str) -> None:
    assert all(known in refused(name) for known in DEFECTS)


@pytest.mark.parametrize("name", ["no_such_module:X", "OWN:NO_SUCH", ":X", ".x:y",
                                  "broken_target_of_a_test:X"])
def test_what_cannot_be_loaded_is_named_with_the_reason(own: str, name: str) -> None:
    name = name.replace("OWN", own)
    assert f"The target {name!r} cannot be loaded: " in refused(name)


@pytest.mark.parametrize(("attribute", "problems"), [
    ("NOTHING", ["it has no name", "it has no claims", "it has no recovery_ms",
                 "it has no open"]),
    ("HALF", ["it has no open", "it claims 'magic'", "it claims 'wonders'", ", ".join(CLAIMS),
              "its recovery_ms is 'soon'"]),
    ("LISTING", ["its claims are 'delivery', not a set", "its recovery_ms is 0",
                 "its preload is 'own', not a list of modules", "its open cannot be called"])])
def test_what_is_no_target_is_told_all_that_is_missing_at_once(
        own: str, attribute: str, problems: list[str]) -> None:
    told = refused(f"{own}:{attribute}")
    assert told.startswith(f"'{own}:{attribute}' is not a target: ")
    assert [problem for problem in problems if problem not in told] == []


def test_only_what_a_target_names_is_imported_for_it(own: str) -> None:
    assert preloaded_for(load_target(f"{own}:KIND")) == ()
    assert preloaded_for(REFERENCE) == REFERENCE.preload != ()


@pytest.mark.parametrize("answer", [
    None, view("t"), view("t", "running", attempt=3), view("t", "succeeded", priority=0),
    view("t", "expired", priority=9)])
def test_a_good_answer_has_no_fault(answer: object) -> None:
    assert faults_in(answer, task_id="t") == []


def test_all_faults_of_an_answer_are_told_at_once() -> None:
    bad: Any = view("other", "sleeping", attempt=0, max_attempts=-1, priority=10)
    told = "\n".join(faults_in(bad, task_id="t"))
    assert told.splitlines()[0] == "asked for task t, answered for other"
    for part in ("attempt is 0", "max_attempts is -1", "priority is 10"):
        assert part in told
    assert len(told.splitlines()) == 4


def test_a_status_of_its_own_is_no_fault_but_a_finding() -> None:
    """STATE-04 is judged; an answer that ends the run would leave nothing to judge."""
    assert faults_in(view("t", "sleeping"), task_id="t") == []


@pytest.mark.parametrize("status", ["failed", "dead_lettered"])
def test_a_failure_names_its_error(status: str) -> None:
    assert faults_in(view("t", status), task_id="t") == [f"status {status} without an error class"]


@pytest.mark.parametrize("answer", [{}, "succeeded", 7])
def test_an_answer_of_another_type_is_one_fault(answer: object) -> None:
    assert faults_in(answer, task_id="t") == [
        f"look answered a {type(answer).__name__}, not a TaskView"]


def test_numbers_that_are_no_numbers_are_faults() -> None:
    odd: Any = {"attempt": "1", "max_attempts": "5", "priority": "5"}
    assert len(faults_in(view("t", **odd), task_id="t")) == 3


def test_what_an_opened_target_lacks_is_named() -> None:
    class Half:
        submit = "not callable"

        def close(self) -> None: ...

    assert lacks_of(Half()) == ["worker()", "submit()"]


def test_what_a_target_keeps_no_record_of_may_be_left_out_of_a_view() -> None:
    bare = TaskView(task_id="t", status="queued")
    assert faults_in(bare, task_id="t") == []
    assert msgspec.to_builtins(bare) == {"task_id": "t", "status": "queued"}

"""The cases as a list: each has a story, and tests clauses that the contract has."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from dtq_conformance import cases
from dtq_conformance.cases import CASES
from dtq_conformance.clauses import load_clauses
from dtq_conformance.trial import Trial

EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@EACH
def test_a_case_tests_clauses_of_the_contract(case: Trial) -> None:
    assert case.clauses
    assert set(case.clauses) <= set(load_clauses())
    assert len(set(case.clauses)) == len(case.clauses)


@EACH
def test_a_case_tells_its_story_in_a_sentence(case: Trial) -> None:
    assert case.story.endswith(".")
    assert case.room == "conformance"
    assert case.expects == "holds"


def test_no_two_cases_share_a_name() -> None:
    folder = Path(str(cases.__file__)).parent
    modules = [import_module(f"{cases.__name__}.{path.stem}") for path in folder.glob("*.py")
               if path.stem != "__init__"]
    assert len(CASES) == sum(len(module.CASES) for module in modules)

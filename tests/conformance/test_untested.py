"""The list of what nothing tests: each clause of the contract is tested, or a reason says why not.
"""

from __future__ import annotations

from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance.clauses import load_clauses
from dtq_conformance.list_clauses import list_clauses
from dtq_conformance.untested import REASONS, UNTESTED


def scenarios() -> dict[str, list[str]]:
    return {clause: [name for name, scenario in SCENARIOS.items()
                     if clause in scenario.clauses and scenario.expects == "holds"]
            for clause in load_clauses()}


def test_a_clause_that_no_trial_tests_has_a_reason() -> None:
    assert [row.id for row in list_clauses(scenarios()) if not row.reason
            and row.state != "tested"] == [], "add them to untested.py, with the reason"


def test_a_clause_that_is_tested_has_left_the_list() -> None:
    assert [row.id for row in list_clauses(scenarios()) if row.id in UNTESTED
            and row.state != "untested"] == [], "take them out of untested.py"


def test_the_list_names_clauses_of_the_contract_and_each_once() -> None:
    listed = [clause for clauses in REASONS.values() for clause in clauses]
    assert sorted(listed) == sorted(UNTESTED)
    assert set(listed) <= set(load_clauses())


def test_a_reason_is_a_sentence() -> None:
    assert [reason for reason in REASONS if not reason.endswith(".")] == []

"""`dtq-conformance clauses`: every clause with who tests it, for people and as JSON.

A clause that binds the judge is held by tests of this folder; the table below says by which.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from dtq_conformance import list_clauses as module
from dtq_conformance.__main__ import main
from dtq_conformance.clauses import JUDGE, load_clauses
from dtq_conformance.exits import CONFORMS, INPUT, UNKNOWN
from dtq_conformance.list_clauses import Row, counts, covered, list_clauses, scenarios_by_clause
from dtq_conformance.untested import UNTESTED

HERE = Path(__file__).parent

JUDGED_BY = {
    "CLAIM-01": ("test_checker.py", "test_a_clause_that_the_target_does_not_claim_is_not_judged"),
    "CLAIM-02": ("test_checker.py",
                 "test_a_checker_says_unknown_of_each_clause_when_there_is_nothing_to_judge"),
    "CLAIM-03": ("test_claims.py",
                 "test_claimed_clauses_that_no_trial_tests_are_counted_with_their_reasons"),
    "CLAIM-04": ("test_target.py", "test_what_is_no_target_is_told_all_that_is_missing_at_once"),
    "CLAIM-05": ("test_checker.py",
                 "test_a_violated_should_is_a_warning_and_leaves_the_verdict_as_it_is"),
    "CLAIM-06": ("test_checker.py",
                 "test_a_fault_that_left_no_mark_makes_the_verdict_unknown_but_acquits_of_nothing"),
    "CLAIM-07": ("test_operation.py", "test_only_a_refusal_proves_that_nothing_happened"),
    "CLAIM-08": ("test_checker.py",
                 "test_the_order_of_the_records_in_the_file_changes_no_verdict"),
}


def rows_by_id(scenarios: dict[str, list[str]]) -> dict[str, Row]:
    return {row.id: row for row in list_clauses(scenarios)}


def test_each_clause_of_the_contract_has_its_row_in_the_order_of_the_page() -> None:
    rows = list_clauses({})
    assert [row.id for row in rows] == list(load_clauses())
    assert sum(counts(rows).values()) == len(rows)


def test_a_tested_clause_names_its_checker_cases_scenarios_and_engines() -> None:
    row = rows_by_id({"DLV-04": ["a_story"]})["DLV-04"]
    assert (row.state, row.reason, row.scenarios) == ("tested", "", ["a_story"])
    assert row.checkers == ["nothing_lost"]
    assert "absorbs_second_redelivery" in row.broken_engines
    assert rows_by_id({})["TASK-01"].cases == ["accepted_tasks_are_there"]


def test_a_checker_alone_does_not_test_a_clause_nor_does_a_story_alone() -> None:
    rows = rows_by_id({"CLI-06": ["a_story"]})
    assert (rows["DLV-04"].cases, rows["DLV-04"].state) == ([], "untested")
    assert (rows["CLI-06"].checkers, rows["CLI-06"].state) == ([], "untested")


def test_what_nothing_tests_has_its_reason_and_what_can_only_be_inspected_too() -> None:
    rows = rows_by_id({})
    assert (rows["CLI-06"].state, rows["CLI-06"].reason) == ("untested", UNTESTED["CLI-06"])
    assert rows["SEC-03"].state == "by inspection"
    assert rows["SEC-03"].reason == load_clauses()["SEC-03"].inspection


def test_each_clause_is_covered_by_one_checker_at_most() -> None:
    found = covered()
    assert {clause: names for clause, names in found.items() if len(names) != 1} == {}
    assert set(found) <= set(load_clauses())


def test_what_binds_the_judge_is_held_by_a_test_of_this_folder() -> None:
    rows = [row for row in list_clauses({}) if row.claim == JUDGE]
    assert {row.id for row in rows if row.state == "binds the judge"} == set(JUDGED_BY)
    for file, name in JUDGED_BY.values():
        assert name in {node.name for node in ast.parse((HERE / file).read_text()).body
                        if isinstance(node, ast.FunctionDef)}


def test_the_list_is_printed_with_the_number_of_each_state(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "scenarios_by_clause", lambda: {"DLV-04": ["a_story"]})
    assert main(["clauses"]) == UNKNOWN, "clauses that the left-out scenarios test have no reason"
    out = capsys.readouterr().out
    assert "DLV-04 · MUST · delivery  tested\n    scenarios: a_story\n" in out
    assert f"CLI-06 · MUST · cli  untested\n    {UNTESTED['CLI-06']}\n" in out
    assert f"{len(load_clauses())} clauses: " in out.splitlines()[-1]


@pytest.mark.slow
def test_as_json_the_list_is_complete_and_nothing_is_untested_without_a_reason(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses", "--json"]) == CONFORMS
    told = json.loads(capsys.readouterr().out)
    assert [clause["id"] for clause in told["clauses"]] == list(load_clauses())
    assert told["unexplained"] == []
    assert sum(told["counts"].values()) == len(told["clauses"])


@pytest.mark.slow
def test_canaries_test_nothing_since_the_harness_does_the_harm_in_them() -> None:
    found = scenarios_by_clause()
    assert "worker_killed_twice" in found["DLV-04"]
    assert "canary" not in {name for names in found.values() for name in names}


def test_a_room_that_cannot_be_asked_is_one_sentence(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    assert main(["clauses"]) == INPUT
    assert capsys.readouterr().err.startswith("The scenarios cannot be listed here: install")

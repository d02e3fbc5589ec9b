"""From a history to a verdict: the worst of the rows, and never a pass without a proof."""

from __future__ import annotations

import random

import pytest
from dtq_conformance.checker import Check, judge
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.clauses import load_clauses
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, RunVerdict, Verdict
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.histories import (
    T,
    U,
    V,
    absent,
    born,
    end,
    fault,
    flat,
    history,
    killed,
    look,
    mark,
    ran,
    start,
    submit,
    terminated,
)

CLAIMS = {clause.id: clause.claim for clause in load_clauses().values()}


def saying(clause: str, *, judged: int = 1, violated: bool = False,
           unknown: bool = False) -> Check:
    """A checker that says this about one clause."""
    def check(_: History) -> list[Verdict]:
        ledger = Ledger("saying", {clause: "It holds, {n} times."})
        ledger.judged(clause, judged)
        if violated:
            ledger.violated(clause, T, f"Task {T} was lost.")
        if unknown:
            ledger.unknown(clause, T, f"Task {T} may be lost.")
        return ledger.verdicts()
    return check


def crashing(_: History) -> list[Verdict]:
    raise ZeroDivisionError("division by zero")


def rows(verdict: RunVerdict) -> dict[str, str]:
    return {row.clause: row.status for row in verdict.rows}


def test_the_verdict_is_the_worst_of_its_rows() -> None:
    def verdict(*checks: Check) -> str:
        named = {str(number): check for number, check in enumerate(checks)}
        return judge(history(clauses=["DLV-01", "DLV-02"]), named, CLAIMS).status

    good = saying("DLV-02")
    assert verdict(saying("DLV-01"), good) == "holds"
    assert verdict(saying("DLV-01", unknown=True), good) == "unknown"
    assert verdict(saying("DLV-01", judged=0), good) == "unknown"
    assert verdict(saying("DLV-01", unknown=True, violated=True), good) == "violated"
    assert verdict(good) == "unknown"


def test_a_run_without_rows_is_unknown() -> None:
    assert judge(history(), {"a": saying("DLV-01")}, CLAIMS).status == "unknown"


def test_a_violation_of_a_clause_that_was_not_tested_is_reported() -> None:
    verdict = judge(history(clauses=["DLV-02"]), {
        "a": saying("DLV-01", violated=True), "b": saying("DLV-02")}, CLAIMS)
    assert rows(verdict) == {"DLV-01": "violated", "DLV-02": "holds"}
    assert verdict.convicted_by == ("saying",)


def test_a_violated_should_is_a_warning_and_leaves_the_verdict_as_it_is() -> None:
    """CLAIM-05: a violated MUST makes a target nonconformant; a violated SHOULD is a warning."""
    checks = {"a": saying("DLV-01"), "b": saying("CLI-07", violated=True)}

    def judged(shoulds: set[str]) -> RunVerdict:
        return judge(history(clauses=["DLV-01", "CLI-07"], claims=["delivery", "cli"]), checks,
                     CLAIMS, shoulds)

    must, should = judged(set()), judged({"CLI-07"})
    assert (must.status, must.convicted_by, must.warned_by) == ("violated", ("saying",), ())
    assert (should.status, should.convicted_by, should.warned_by) == ("holds", (), ("saying",))
    assert rows(should) == {"DLV-01": "holds", "CLI-07": "warning"}
    assert f"warning: CLI-07: Task {T} was lost." in should.sentence


def test_an_undecided_should_is_as_unknown_as_a_must() -> None:
    verdict = judge(history(clauses=["CLI-07"], claims=["cli"]),
                    {"a": saying("CLI-07", unknown=True)}, CLAIMS, {"CLI-07"})
    assert (verdict.status, rows(verdict)) == ("unknown", {"CLI-07": "unknown"})


def test_a_clause_that_the_target_does_not_claim_is_not_judged() -> None:
    verdict = judge(history(clauses=["DLQ-01"], claims=["delivery"]),
                    {"a": saying("DLQ-01", violated=True)}, CLAIMS)
    assert rows(verdict) == {"DLQ-01": "not claimed"}


def test_a_clause_that_the_contract_does_not_have_is_unknown() -> None:
    assert rows(judge(history(clauses=["DLV-99"]), {"a": saying("DLV-99")}, CLAIMS)) == {
        "DLV-99": "unknown"}


def test_a_checker_that_fails_makes_the_verdict_unknown() -> None:
    verdict = judge(history(clauses=["DLV-01"]), {"a": saying("DLV-01"), "b": crashing}, CLAIMS)
    assert rows(verdict) == {"DLV-01": "unknown"}
    assert "The checker b itself failed: ZeroDivisionError" in verdict.sentence


def test_a_fault_that_left_no_mark_makes_the_verdict_unknown_but_acquits_of_nothing() -> None:
    def status(held: bool, violated: bool) -> str:
        return judge(history(mark(held), clauses=["DLV-01"]),
                     {"a": saying("DLV-01", violated=violated)}, CLAIMS).status

    assert [status(True, False), status(False, False), status(False, True)] == [
        "holds", "unknown", "violated"]


@pytest.mark.parametrize("name", CHECKERS)
def test_a_checker_says_unknown_of_each_clause_when_there_is_nothing_to_judge(name: str) -> None:
    for verdict in CHECKERS[name](history()):
        assert (verdict.status, verdict.judged, verdict.checker) == ("unknown", 0, name)


STORY = flat([
    submit(), submit(U, steps=[{"fail": "retryable", "until_attempt": 1}]), submit(V), born(1, 2),
    start(100), fault("killed", 150, 160, worker=1), killed(1, 151),
    ran(1300, 1400, attempt=2, by=2), ran(110, 120, U, "failed", by=2),
    ran(200, 210, U, attempt=2, by=2), look(attempt=2, by=2), look(U, attempt=2, by=2),
    absent(V), terminated(2, 2000, in_hand=[], number=1), look(U, "retrying", at=150),
    end(1500, V, by=2), mark()])


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_records_in_the_file_changes_no_verdict(chance: random.Random) -> None:
    clauses = sorted(CLAIMS)
    shuffled = list(STORY)
    chance.shuffle(shuffled)
    assert judge(history(shuffled, clauses=clauses), CHECKERS, CLAIMS) == judge(
        history(STORY, clauses=clauses), CHECKERS, CLAIMS)

"""The ledger of a checker: evidence first, a sentence second."""

from __future__ import annotations

import pytest
from dtq_conformance.verdict import EXIT_CODE, SEVERITY, Ledger, Status, Verdict, worst

A, B = "DLV-01", "DLV-02"


@pytest.fixture
def ledger() -> Ledger:
    return Ledger("nothing_lost", {A: "All {n} tasks are there.", B: "All {n} are in order."})


def test_a_clause_for_which_nothing_was_judged_is_unknown(ledger: Ledger) -> None:
    assert [(v.clause, v.status, v.judged) for v in ledger.verdicts()] == \
        [(A, "unknown", 0), (B, "unknown", 0)]


def test_a_clause_without_findings_holds_and_says_how_many_were_judged(ledger: Ledger) -> None:
    ledger.judged(A)
    ledger.judged(A, 2)
    assert ledger.verdicts()[0] == Verdict(
        clause=A, checker="nothing_lost", status="holds", judged=3,
        sentence="All 3 tasks are there.")


def test_a_violation_outweighs_what_is_unknown_and_comes_first(ledger: Ledger) -> None:
    ledger.judged(A, 3)
    ledger.unknown(A, "t1", "Nobody can say.")
    ledger.violated(A, "t2", "Lost.", at_ns=7)
    verdict, other = ledger.verdicts()
    assert (verdict.status, verdict.judged, verdict.sentence) == ("violated", 3,
                                                                  "Lost. (and 1 more)")
    assert [(f.status, f.task_id, f.evidence) for f in verdict.findings] == \
        [("violated", "t2", {"at_ns": 7}), ("unknown", "t1", {})]
    assert other.status == "unknown"


def test_something_undecided_makes_the_clause_unknown_however_much_held(ledger: Ledger) -> None:
    ledger.judged(B, 100)
    ledger.unknown(B, "t1", "The machine stood still.")
    assert ledger.verdicts()[1].status == "unknown"
    assert ledger.verdicts()[1].sentence == "The machine stood still."


def test_a_violation_counts_though_nothing_was_said_to_be_judged(ledger: Ledger) -> None:
    ledger.violated(A, None, "Lost.")
    assert ledger.verdicts()[0].status == "violated"


@pytest.mark.parametrize(("statuses", "expected"), [
    ([], "unknown"), (["holds"], "holds"), (["not claimed"], "not claimed"),
    (["not claimed", "holds"], "holds"), (["holds", "unknown"], "unknown"),
    (["holds", "warning"], "warning"), (["warning", "unknown"], "unknown"),
    (["unknown", "violated", "holds"], "violated")])
def test_the_worst_status_is_that_of_the_whole(statuses: list[Status], expected: Status) -> None:
    assert worst(statuses) == expected


def test_each_status_has_a_severity_and_an_exit_code() -> None:
    assert set(EXIT_CODE) == set(SEVERITY)
    assert EXIT_CODE == {"holds": 0, "not claimed": 0, "warning": 0, "violated": 1, "unknown": 2}

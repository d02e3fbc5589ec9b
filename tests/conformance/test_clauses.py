"""The clauses are read from the page itself, and a bad heading is named."""

from __future__ import annotations

import pytest
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.clauses import Clause, ContractError, load_clauses, parse_clauses

from tests.conformance.histories import history

PAGE = """# The contract

### DLV-01 · MUST · delivery
Nothing is lost.
Nothing.

## Attempts

### RETRY-01 · SHOULD · retry
Bounded.
"""


def test_a_clause_is_a_heading_and_the_text_below_it() -> None:
    assert parse_clauses(PAGE) == {
        "DLV-01": Clause("DLV-01", "MUST", "delivery", "Nothing is lost.\nNothing."),
        "RETRY-01": Clause("RETRY-01", "SHOULD", "retry", "Bounded.")}


@pytest.mark.parametrize(("heading", "complaint"), [
    ("### DLV-01 · MUST · delivery\nAgain.", "line 11: the clause DLV-01 stands there twice"),
    ("### DLV-1 · MUST · delivery\nShort.", "line 11: '### DLV-1 · MUST · delivery' is not"),
    ("### DLV-02 - MUST - delivery\nDashes.", "line 11: '### DLV-02 - MUST - delivery' is not"),
    ("### DLV-02 · OUGHT · delivery\nLevel.", "is not a clause's heading"),
    ("#### DLV-02 · MUST · delivery\nDeep.", "is not a clause's heading"),
    ("### DLV-02 · MUST · magic\nClaim.", "no target can claim 'magic'"),
    ("### DLV-02 · MUST · delivery\n", "the clause DLV-02 has no text")])
def test_a_bad_heading_is_an_error_that_names_its_line(heading: str, complaint: str) -> None:
    with pytest.raises(ContractError, match=r"line 11") as raised:
        parse_clauses(f"{PAGE}{heading}\n")
    assert complaint in str(raised.value)


def test_the_contract_of_this_house_is_well_formed() -> None:
    clauses = load_clauses()
    assert 25 <= len(clauses) <= 60
    assert clauses["DLV-01"].claim == "delivery"


def test_each_clause_is_judged_by_exactly_one_checker() -> None:
    covered = [verdict.clause for check in CHECKERS.values() for verdict in check(history())]
    assert sorted(covered) == sorted(load_clauses())

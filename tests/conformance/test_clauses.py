"""The clauses are read from the page itself, and a bad heading is named."""

from __future__ import annotations

import pytest
from dtq_conformance.clauses import (
    JUDGE,
    Clause,
    ContractError,
    load_clauses,
    parse_clauses,
    read_page,
    read_table,
)
from dtq_conformance.target import CLAIMS

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


@pytest.mark.parametrize("claim", ["delivery", "durability:power-loss", "judge"])
def test_a_clause_belongs_to_a_claim_or_binds_the_judge(claim: str) -> None:
    clauses = parse_clauses(f"### DUR-01 · MUST · {claim}\nWords.")
    assert clauses["DUR-01"].claim == claim


def test_why_a_clause_can_only_be_inspected_stands_in_its_last_paragraph() -> None:
    page = ("### SEC-03 · MUST · security\nConstant time.\n\nBy inspection: cannot be\ntold.\n\n"
            "## Next\n\n### SEC-04 · MUST · security\nBy inspection is a way to look.\n")
    assert parse_clauses(page) == {
        "SEC-03": Clause("SEC-03", "MUST", "security", "Constant time.", "cannot be told."),
        "SEC-04": Clause("SEC-04", "MUST", "security", "By inspection is a way to look.")}


def test_a_clause_that_consists_of_its_inspection_alone_has_no_text() -> None:
    with pytest.raises(ContractError, match="SEC-03 has no text"):
        parse_clauses("### SEC-03 · MUST · security\nBy inspection: cannot be told.\n")


def test_a_table_is_found_by_the_title_of_its_first_column() -> None:
    page = "| a | b |\n|---|---|\n| `x` | y `z` |\n| | `1` `2` |\n\n| c | d |\n|---|---|\n"
    assert read_table(page, "a") == [["x", "y `z`"], ["", "`1` `2`"]]
    assert read_table(page, "c") == []
    for title in ("b", "x", "z"):
        with pytest.raises(ContractError, match=f"0 tables whose first column is '{title}'"):
            read_table(page, title)
    with pytest.raises(ContractError, match="2 tables"):
        read_table(page + page, "a")


def test_the_contract_of_this_house_is_well_formed() -> None:
    clauses = load_clauses()
    assert len(clauses) >= 120
    assert clauses["DLV-01"].claim == "delivery"
    assert {clause.claim for clause in clauses.values()} == {*CLAIMS, JUDGE}


def test_the_contract_says_what_each_claim_means() -> None:
    assert [claim for claim, _ in read_table(read_page(), "claim")] == list(CLAIMS)

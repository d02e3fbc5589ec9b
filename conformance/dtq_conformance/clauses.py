"""The clauses of CONTRACT.md, the only list of them: every row of every verdict is one.

Comes in: the page itself, from the wheel or from the checkout. Goes out: `Clause` by id, and the
rows of the page's tables. A clause is a heading `### DLV-01 · MUST · delivery` and the text below
it. A last paragraph `By inspection: …` says why no test from outside can break it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from dtq_conformance.target import CLAIMS

PAGE = "CONTRACT.md"

JUDGE = "judge"
"""Stands in place of a claim in the clauses that bind the judge: no target claims it."""

_HEADING = re.compile(r"### ([A-Z]+-\d\d) · (MUST|SHOULD|MAY) · ([a-z-]+(?::[a-z-]+)?)")

_INSPECTION = re.compile(r"(?:\A|\n\n)By inspection: (.+)\Z", re.DOTALL)


class ContractError(Exception):
    """CONTRACT.md is missing, or a heading in it is not a clause's or stands there twice."""


@dataclass(frozen=True)
class Clause:
    """One promise: its permanent id, its level (RFC 2119), the claim it belongs to, its words.

    `inspection` is why no test from outside can break it; empty if one can.
    """

    id: str
    level: str
    claim: str
    text: str
    inspection: str = ""


def load_clauses() -> dict[str, Clause]:
    """Every clause of the contract by its id, in the order of the page."""
    return parse_clauses(read_page())


def read_page() -> str:
    """The text of CONTRACT.md: a file of the package in a wheel, the checkout's root otherwise."""
    packaged = resources.files("dtq_conformance").joinpath(PAGE)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = Path(__file__).parents[2] / PAGE
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    raise ContractError(f"{PAGE} is neither in the installed package nor at {checkout}. "
                        "Install dtq-contract again.")


def parse_clauses(page: str) -> dict[str, Clause]:
    """Parse the page. Raises `ContractError` that names the line of a bad heading."""
    found: dict[str, Clause] = {}
    lines = page.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("###"):
            continue
        heading = _HEADING.fullmatch(line.rstrip())
        if heading is None:
            raise ContractError(f"{PAGE}, line {number + 1}: {line!r} is not a clause's heading. "
                                "Expected e.g. '### DLV-01 · MUST · delivery'.")
        name, level, claim = heading.groups()
        if name in found:
            raise ContractError(f"{PAGE}, line {number + 1}: the clause {name} stands there twice.")
        if claim not in (*CLAIMS, JUDGE):
            raise ContractError(f"{PAGE}, line {number + 1}: no target can claim {claim!r}. "
                                f"Known are {', '.join(CLAIMS)}.")
        text, inspection = _inspected(_text_below(lines, number))
        found[name] = Clause(name, level, claim, text, inspection)
        if not found[name].text:
            raise ContractError(f"{PAGE}, line {number + 1}: the clause {name} has no text.")
    return found


def _text_below(lines: list[str], number: int) -> str:
    text = []
    for line in lines[number + 1:]:
        if line.startswith("#"):
            break
        text.append(line)
    return "\n".join(text).strip()


def _inspected(text: str) -> tuple[str, str]:
    """The words of a clause, and the reason why it can only be inspected."""
    found = _INSPECTION.search(text)
    if found is None:
        return text, ""
    return text[:found.start()].strip(), " ".join(found.group(1).split())


def read_table(page: str, first: str) -> list[list[str]]:
    """The rows of the one table whose first column has this title, cell by cell, without the
    backticks around a whole cell. Raises `ContractError` if there is no such table, or two."""
    lines = page.splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith(f"| {first} |")]
    if len(heads) != 1:
        raise ContractError(f"{PAGE} has {len(heads)} tables whose first column is {first!r}.")
    rows = []
    for line in lines[heads[0] + 2:]:
        if not line.startswith("|"):
            break
        rows.append([re.sub(r"\A`([^`]*)`\Z", r"\1", cell.strip())
                     for cell in line.strip("|").split("|")])
    return rows

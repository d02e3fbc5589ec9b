"""What a target is judged by: the trials whose clauses and needs it claims, and what none tests.

Comes in: trials (cases or scenarios) and a target's claims. Goes out: the ones to run, and a reason
for each other one; and the claimed clauses that no trial tests. What is not claimed is counted as
that: it is neither passed nor missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dtq_conformance.clauses import load_clauses
from dtq_conformance.untested import UNTESTED


class Claimable(Protocol):
    """A case or a scenario: clauses that it tests, and claims without which it makes no sense."""

    @property
    def clauses(self) -> tuple[str, ...]: ...

    @property
    def needs(self) -> tuple[str, ...]: ...


def not_claimed(trials: Mapping[str, Claimable], claims: frozenset[str]) -> dict[str, str]:
    """The trials that a target with these claims is not put through, each with the reason."""
    claim_of = {clause.id: clause.claim for clause in load_clauses().values()}
    found = {}
    for name, trial in trials.items():
        lacking = [need for need in trial.needs if need not in claims]
        about = dict.fromkeys(claim_of.get(clause, "") for clause in trial.clauses)
        if lacking:
            found[name] = f"It needs a target that claims {' and '.join(lacking)}."
        elif not claims.intersection(about):
            found[name] = f"It is about {' and '.join(about)}, which the target does not claim."
    return found


def untested(claims: frozenset[str]) -> dict[str, str]:
    """The clauses that a target with these claims must keep and that no trial tests yet, each with
    the reason. They are counted beside the verdicts, and are none."""
    return {clause.id: UNTESTED[clause.id] for clause in load_clauses().values()
            if clause.claim in claims and clause.id in UNTESTED}

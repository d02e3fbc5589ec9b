"""From a history to a verdict: every checker looks at the whole run, whatever the trial was.

A row of a verdict is a clause. The trial says which clauses it sets out to test; a violation of
any other clause that a checker comes upon is reported as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

import msgspec

from dtq_conformance.history import History
from dtq_conformance.verdict import Finding, RunVerdict, Verdict, worst

Check = Callable[[History], list[Verdict]]
"""A checker: one verdict for each clause that it covers. It runs nothing and changes nothing."""


def judge(history: History, checks: Mapping[str, Check], claims: Mapping[str, str],
          shoulds: Set[str] = frozenset()) -> RunVerdict:
    """Judge a history with every checker; `claims` maps a clause id to the claim it belongs to,
    `shoulds` are the ids of those whose violation is a warning, and leaves the run's status alone.

    A checker that raises makes its clauses unknown. A mark that is missing makes every row that
    would hold unknown: a fault that did not bite tested nothing. A run without any row is unknown.
    """
    tested = set(history.header.clauses)
    found: dict[str, list[Verdict]] = {}
    crashes: list[Finding] = []
    for name, check in checks.items():
        try:
            verdicts = check(history)
        except Exception as error:
            crashes.append(_crash(name, error))
            continue
        for verdict in verdicts:
            if verdict.clause in tested or verdict.status == "violated":
                found.setdefault(verdict.clause, []).append(verdict)
    missing = tuple(mark.name for mark in history.marks if not mark.held)
    rows = [_softened(_row(history, clause, found.get(clause, []), crashes, missing, claims),
                      shoulds) for clause in sorted(tested | found.keys())]
    status = worst(["holds" if row.status == "warning" else row.status for row in rows])
    header = history.header
    return RunVerdict(
        run_id=header.run_id, room=header.room, trial=header.trial, target=header.target,
        broker=header.broker, seed=header.seed, status=status,
        sentence=_sentence(status, rows),
        convicted_by=_accusers(found, found.keys() - shoulds),
        rows=tuple(rows), marks_missing=missing, repeat=header.repeat,
        expects=header.expects, warned_by=_accusers(found, found.keys() & shoulds))


def _accusers(found: Mapping[str, list[Verdict]], clauses: Set[str]) -> tuple[str, ...]:
    """The checkers that found one of these clauses violated."""
    return tuple(sorted({verdict.checker for clause in clauses for verdict in found[clause]
                         if verdict.status == "violated"}))


def _softened(row: Verdict, shoulds: Set[str]) -> Verdict:
    """The row; a warning where it is the violation of a SHOULD."""
    if row.status == "violated" and row.clause in shoulds:
        return msgspec.structs.replace(row, status="warning")
    return row


def _crash(name: str, error: Exception) -> Finding:
    return Finding(status="unknown", task_id=None, evidence={"checker": name},
                   sentence=f"The checker {name} itself failed: {type(error).__name__}: {error}.")


def _row(history: History, clause: str, verdicts: list[Verdict], crashes: list[Finding],
         missing: tuple[str, ...], claims: Mapping[str, str]) -> Verdict:
    """Merge what several checkers say about one clause into the row that is reported."""
    if clause not in claims:
        return _unknown(clause, f"CONTRACT.md has no clause {clause}.")
    if claims[clause] not in history.header.claims:
        return Verdict(clause=clause, checker="", status="not claimed", judged=0,
                       sentence=f"The target does not claim {claims[clause]}.")
    status = worst([verdict.status for verdict in verdicts])
    if status == "violated":
        return next(verdict for verdict in verdicts if verdict.status == "violated")
    if crashes:
        return _unknown(clause, crashes[0].sentence, *crashes)
    if missing:
        marks = [mark for mark in history.marks if not mark.held]
        return _unknown(clause, f"The fault left no mark: {marks[0].sentence}")
    if not verdicts:
        return _unknown(clause, "No checker covers this clause.")
    return next(verdict for verdict in verdicts if verdict.status == status)


def _unknown(clause: str, sentence: str, *findings: Finding) -> Verdict:
    return Verdict(clause=clause, checker="", status="unknown", judged=0, sentence=sentence,
                   findings=tuple(findings))


def _sentence(status: str, rows: list[Verdict]) -> str:
    bad = [row for row in rows if row.status == status]
    if status in ("violated", "unknown") and bad:
        return f"{status}: {bad[0].clause}: {bad[0].sentence}"
    held = sum(row.status == "holds" for row in rows)
    warnings = [row for row in rows if row.status == "warning"]
    told = f"All {held} tested clauses hold." if held == len(rows) else \
        f"{held} of {len(rows)} clauses hold, the others are not claimed." if not warnings else \
        f"{held} of {len(rows)} clauses hold, none that is a MUST is violated."
    return " ".join([told, *(f"warning: {row.clause}: {row.sentence}" for row in warnings)])

"""What is said about a clause after a run: evidence first, a sentence second.

Checkers write into a `Ledger`; it turns what they found into one `Verdict` per clause.
`checker.judge` merges these into a `RunVerdict`, which reports, the kill matrix and CI read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Status = Literal["holds", "violated", "unknown", "not claimed", "warning"]
"""A `warning` is the violation of a SHOULD: a row's status, never that of a run."""

SEVERITY: dict[Status, int] = {"not claimed": 0, "holds": 1, "warning": 2, "unknown": 3,
                               "violated": 4}

EXIT_CODE: dict[Status, int] = {"holds": 0, "not claimed": 0, "warning": 0, "violated": 1,
                                "unknown": 2}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that went wrong, or that cannot be told, about one task."""

    status: Literal["violated", "unknown"]
    task_id: str | None
    sentence: str
    evidence: dict[str, Any]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one checker says about one clause. `judged` counts the things it looked at."""

    clause: str
    checker: str
    status: Status
    judged: int
    sentence: str
    findings: tuple[Finding, ...] = ()


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one run: `status` is the worst of its rows, one row per clause, warnings
    left out; `warned_by` are the checkers that found a SHOULD violated."""

    run_id: str
    room: str
    trial: str
    target: str
    broker: str
    seed: int
    status: Status
    sentence: str
    convicted_by: tuple[str, ...]
    rows: tuple[Verdict, ...]
    marks_missing: tuple[str, ...]
    repeat: str
    expects: Literal["holds", "violated"] = "holds"
    warned_by: tuple[str, ...] = ()


def worst(statuses: list[Status]) -> Status:
    """Return the most severe status; an empty list proves nothing and is unknown."""
    return max(statuses, key=SEVERITY.__getitem__, default="unknown")


class Ledger:
    """Collects what one checker judged and found, clause by clause."""

    def __init__(self, checker: str, promises: dict[str, str]) -> None:
        """`promises` maps each clause id to the sentence that is true when it holds; `{n}`
        in it stands for the number of things judged."""
        self.checker = checker
        self._promises = promises
        self._judged = dict.fromkeys(promises, 0)
        self._findings: dict[str, list[Finding]] = {clause: [] for clause in promises}

    def judged(self, clause: str, count: int = 1) -> None:
        """Count things that were looked at for this clause, good or bad."""
        self._judged[clause] += count

    def violated(self, clause: str, task_id: str | None, sentence: str, **evidence: Any) -> None:
        """Record a proven violation."""
        self._add(clause, Finding(status="violated", task_id=task_id, sentence=sentence,
                                  evidence=evidence))

    def unknown(self, clause: str, task_id: str | None, sentence: str, **evidence: Any) -> None:
        """Record something that the evidence cannot decide."""
        self._add(clause, Finding(status="unknown", task_id=task_id, sentence=sentence,
                                  evidence=evidence))

    def same(self, clause: str, other: str) -> None:
        """Say of this clause all that was said of the other one."""
        self._judged[clause] += self._judged[other]
        self._findings[clause] += self._findings[other]

    def _add(self, clause: str, finding: Finding) -> None:
        self._findings[clause].append(finding)

    def verdicts(self) -> list[Verdict]:
        """One verdict per clause. A clause for which nothing was judged is unknown."""
        return [self._verdict(clause) for clause in self._promises]

    def _verdict(self, clause: str) -> Verdict:
        findings = sorted(self._findings[clause], key=lambda f: -SEVERITY[f.status])
        judged = self._judged[clause]
        if findings:
            status: Status = findings[0].status
            sentence = findings[0].sentence
            if len(findings) > 1:
                sentence += f" (and {len(findings) - 1} more)"
        elif judged == 0:
            status, sentence = "unknown", "Nothing in this history could be judged for this clause."
        else:
            status, sentence = "holds", self._promises[clause].format(n=judged)
        return Verdict(clause=clause, checker=self.checker, status=status, judged=judged,
                       sentence=sentence, findings=tuple(findings))

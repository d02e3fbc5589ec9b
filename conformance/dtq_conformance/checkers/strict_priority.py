"""Strict priority: of two tasks that both waited, a worker took the one of the higher level, and of
two new ones of the same level the one that was accepted first.

There is no tolerance. Judged is only what is provable from outside (`choices`); with fewer than a
hundred pairs the verdict is unknown, since a queue without any order is right by chance as well.
"""

from __future__ import annotations

from dtq_conformance.choices import Choice, choices
from dtq_conformance.evidence import at, data, holder
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

PAIRS_NEEDED = 100

NEW, AGAIN, WITHIN = "PRIO-01", "PRIO-02", "PRIO-03"

PROMISES = {
    NEW: "In all {n} pairs of new tasks that both waited, the one of the higher level was taken "
         "first.",
    AGAIN: "In all {n} pairs with redelivered, released or scheduled work that both waited, the "
           "one of the higher level was taken first.",
    WITHIN: "In all {n} pairs of new tasks of one level that both waited, the one that was "
            "accepted first was taken first.",
}


def check(history: History) -> list[Verdict]:
    """Judge every provable choice; one finding for each task taken wrongly."""
    ledger = Ledger("strict_priority", PROMISES)
    pairs = dict.fromkeys(PROMISES, 0)
    passed_over: dict[tuple[str, str, int], list[Choice]] = {}
    for choice in choices(history):
        clause = WITHIN if choice.is_within_a_level else AGAIN if choice.again else NEW
        pairs[clause] += 1
        if not choice.is_strict:
            key = (clause, choice.taken.task_id, choice.taken.start_ns)
            passed_over.setdefault(key, []).append(choice)
    for clause, count in pairs.items():
        ledger.judged(clause, count)
        if 0 < count < PAIRS_NEEDED and not any(key[0] == clause for key in passed_over):
            ledger.unknown(clause, None, f"Only {count} pairs of tasks of {_levels(clause)} "
                           f"that both waited could be judged; {PAIRS_NEEDED} are needed.",
                           pairs=count)
    for (clause, task_id, _), choices_ in passed_over.items():
        ledger.violated(clause, task_id, _sentence(history, choices_),
                        taken=data(choices_[0].taken), level=choices_[0].taken_level,
                        after_ns=choices_[0].after_ns, pairs_judged=pairs[clause],
                        passed_over=[{"task_id": choice.left.execution.task_id,
                                      "level": choice.left.level,
                                      "waited_since_ns": choice.left.since_ns}
                                     for choice in choices_[:5]])
    return ledger.verdicts()


def _levels(clause: str) -> str:
    return "the same level" if clause == WITHIN else "different levels"


def _sentence(history: History, wrong: list[Choice]) -> str:
    """The one task that was taken and of those that were passed over the one that had to come
    first."""
    taken = wrong[0]
    left = max((choice.left for choice in wrong), key=lambda w: (w.level, -w.since_ns))
    kind = "older tasks of this level" if taken.is_within_a_level else "tasks of higher levels"
    more = f" {len(wrong)} {kind} waited." if len(wrong) > 1 else ""
    return (f"Task {taken.taken.task_id} of priority {taken.taken_level} was taken between "
            f"{at(history, taken.after_ns)[3:]} and its start {at(history, taken.taken.start_ns)} "
            f"({holder(taken.taken)}), while task {left.execution.task_id} of priority "
            f"{left.level}, {left.words} {at(history, left.since_ns)}, waited; that one started "
            f"{at(history, left.execution.start_ns)}.{more}")

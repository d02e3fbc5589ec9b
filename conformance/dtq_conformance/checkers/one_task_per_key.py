"""One task per idempotency key: however often a key is submitted, it has one unfinished task.

A run is shorter than the time for which the key of a finished task is remembered, unless its
timing says otherwise; so a key has one task in a run.
"""

from __future__ import annotations

from collections import defaultdict

from dtq_conformance import evidence, lives
from dtq_conformance.evidence import MS, at
from dtq_conformance.history import History
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

LOOKED_LATE_MS = 1_000
"""The look that showed that a task was over may have come so much later than its end."""

PROMISES = {
    "IDEM-03": "All {n} submissions of the key of an unfinished task were refused with its id.",
    "IDEM-04": "All {n} submissions of the key of a finished task were answered with that task.",
    "IDEM-05": "Each of the {n} keys has one task.",
    "IDEM-10": "All {n} submissions that were sent again were answered as the first time.",
    "IDEM-15": "None of the {n} requeues made a second unfinished task of a key.",
}


def check(history: History) -> list[Verdict]:
    """Judge every key that was submitted more than once, and every submission sent again."""
    ledger = Ledger("one_task_per_key", PROMISES)
    ledger.judged("IDEM-15", sum(
        o.name == "requeue" and o.answer.get("code") == "IDEMPOTENCY_IN_PROGRESS"
        for o in history.operations))
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for asked in history.submissions.values():
        for operation in asked:
            if (key := operation.request.get("idempotency_key")) is not None:
                by_key[key].append(operation)
    for key, operations in sorted(by_key.items()):
        _has_one_task(history, ledger, key, operations)
        for operation in operations:
            _is_answered_by_it(history, ledger, key, operation)
    return ledger.verdicts()


def _accepted(history: History, operation: Operation) -> bool:
    """Whether this submission made a task: it says so, or it was not answered and was executed."""
    if operation.outcome == "ok":
        return not operation.answer.get("duplicate")
    return operation.outcome == "unknown" and operation.task_id in history.executions


def _has_one_task(history: History, ledger: Ledger, key: str,
                  operations: list[Operation]) -> None:
    """Two tasks of one key are wrong while both are unfinished, and for as long as the key of a
    finished one is remembered. A requeued task is unfinished again."""
    made = sorted((o for o in operations if _accepted(history, o)), key=lambda o: o.answered_ns)
    ledger.judged("IDEM-05")
    ledger.judged("IDEM-15", sum(_is_a_requeue(history, operation) for operation in made))
    for place, second in enumerate(made):
        for first in made[:place]:
            ended_ns = _ended_ns(history, first.task_id or "")
            if (lives.same_task(first.task_id or "", second.task_id or "")
                    or (ended_ns is not None and ended_ns < second.asked_ns
                        and _is_forgotten(history, ended_ns, second.answered_ns))):
                continue
            clause = "IDEM-15" if _is_a_requeue(history, second) else "IDEM-05"
            ledger.violated(
                clause, second.task_id, f"The key {key!r} has two tasks: {first.task_id}, "
                f"{_how(history, first)} {at(history, first.answered_ns)}, and {second.task_id}, "
                f"{_how(history, second)} {at(history, second.answered_ns)}, when the first "
                + ("had not been seen to end." if ended_ns is None or ended_ns > second.asked_ns
                   else "had ended and its key was still to be remembered."), key=key)
            return


def _is_forgotten(history: History, ended_ns: int, at_ns: int) -> bool:
    """Whether the key of a task that was seen to be over may be forgotten at this instant."""
    return at_ns >= ended_ns + (history.header.timing.key_ms - LOOKED_LATE_MS) * MS


def _is_a_requeue(history: History, operation: Operation) -> bool:
    return any(each.name == "requeue" and each.asked_ns == operation.asked_ns
               for each in history.operations)


def _how(history: History, operation: Operation) -> str:
    return "requeued" if _is_a_requeue(history, operation) else "accepted"


def _ended_ns(history: History, task_id: str) -> int | None:
    """When the task was seen to be over; None if it was not."""
    return next((look.answered_ns for look in history.looks.get(task_id, [])
                 if evidence.terminal(look)), None)


def _is_answered_by_it(history: History, ledger: Ledger, key: str, operation: Operation) -> None:
    owner = operation.answer.get("task_id")
    mine = operation.task_id
    is_refused = operation.answer.get("code") == "IDEMPOTENCY_IN_PROGRESS"
    again = [each for each in history.submissions.get(mine or "", [])
             if each.answered_ns < operation.asked_ns and each.outcome == "ok"]
    if again and operation.outcome != "unknown":
        ledger.judged("IDEM-10")
        before = again[0].answer.get("duplicate")
        if operation.outcome == "refused" or operation.answer.get("duplicate") != before:
            ledger.violated("IDEM-10", mine, f"Task {mine} was accepted "
                            f"{at(history, again[0].answered_ns)}; sent again with its key "
                            f"{key!r} {at(history, operation.answered_ns)}, it was answered "
                            f"{operation.answer}.", answer=operation.answer)
        return
    if is_refused:
        ended_ns = _ended_ns(history, owner or "")
        ledger.judged("IDEM-03")
        if owner is None or owner == mine:
            ledger.violated("IDEM-03", mine, f"A submission of the key {key!r} was refused "
                            f"{at(history, operation.answered_ns)} because of "
                            f"{'itself' if owner else 'a task that it does not name'}.",
                            answer=operation.answer)
        elif ended_ns is not None and ended_ns < operation.asked_ns and not any(
                lives.same_task(owner, each) for each in history.submissions if each != owner):
            ledger.violated("IDEM-04", mine, f"Task {owner} of the key {key!r} was over "
                            f"{at(history, ended_ns)}, and another submission of the key was "
                            f"refused as in progress {at(history, operation.answered_ns)}.",
                            answer=operation.answer)
    elif operation.outcome == "ok" and operation.answer.get("duplicate"):
        ledger.judged("IDEM-04")
        began = history.submissions.get(str(owner), [])
        unfinished = [look for look in history.looks.get(str(owner), [])
                      if look.asked_ns > operation.answered_ns and not evidence.terminal(look)]
        if not began:
            ledger.violated("IDEM-04", mine, f"A submission of the key {key!r} was answered with "
                            f"task {owner}, whose submission is not recorded.",
                            answer=operation.answer)
        elif unfinished and not lives.was_requeued(history, str(owner)):
            ledger.violated("IDEM-03", mine, f"A submission of the key {key!r} was answered with "
                            f"task {owner} as finished {at(history, operation.answered_ns)}, and "
                            f"that was {unfinished[0].answer.get('status')!r} later.",
                            answer=operation.answer)

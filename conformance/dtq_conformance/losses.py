"""What a power failure may have undone: the tasks that nobody can judge as if it had not been.

Comes in: a history. Goes out: the same without the records of every task that may have changed in
the time whose writes the profile allows to be lost; `whole` keeps them. What was accepted before
that time, or had ended before it, and what came after the failure is judged as ever. A history
without a power failure is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from dtq_conformance import evidence
from dtq_conformance.history import History, Record, Witness
from dtq_conformance.operation import Operation


@dataclass(frozen=True)
class Loss:
    """A power failure: what was answered until `kept_ns` was a second old or more when the power
    failed; the broker was back at `back_ns`."""

    kept_ns: int
    back_ns: int


def losses(history: History) -> list[Loss]:
    """The power failures of a run."""
    return [Loss(spell.detail["kept_ns"], spell.to_ns or history.end_ns)
            for spell in history.spells if spell.effect == "power_lost"]


def apart(history: History) -> History:
    """Leave out what a power failure may have undone."""
    doubtful = {task_id for loss in losses(history) for task_id in doubtful_in(history, loss)}
    if not doubtful:
        return history
    records: list[Record] = []
    for record in history.records:
        if isinstance(record, Operation) and record.name == "dead_letters":
            letters = [each for each in record.answer.get("letters", [])
                       if each["task_id"] not in doubtful]
            records.append(msgspec.structs.replace(record, answer={"letters": letters}))
        elif not (isinstance(record, Operation | Witness) and record.task_id in doubtful):
            records.append(record)
    return History(history.header, tuple(records), history)


def doubtful_in(history: History, loss: Loss) -> set[str]:
    """The tasks that were there before the broker was back, and not seen to have ended before the
    time whose writes may be lost."""
    ended = {task_id for task_id, looks in history.looks.items()
             if any(evidence.terminal(look) and look.answered_ns <= loss.kept_ns
                    for look in looks)}
    return {task_id for task_id, asked in history.submissions.items()
            if asked[0].asked_ns < loss.back_ns and task_id not in ended}

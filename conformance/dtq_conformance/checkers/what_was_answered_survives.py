"""What was answered survives the broker: nothing is undone by a restart, nor by a power failure but
what was younger than a second; and what is left is made of whole steps.

Judged are the looks after the broker was back against what had been answered before it went.
"""

from __future__ import annotations

from collections.abc import Iterable

from dtq_conformance import evidence, losses
from dtq_conformance.checkers import one_way_leads_to_each_unfinished_task as one_way
from dtq_conformance.evidence import at, ms
from dtq_conformance.history import History
from dtq_conformance.operation import Operation
from dtq_conformance.snapshot import Snapshot
from dtq_conformance.states import reachable
from dtq_conformance.target import TERMINAL
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DUR-03": "All {n} answers from before a restart were still true after it.",
    "DUR-04": "All {n} answers that were older than a second when the power failed were still true "
              "after it.",
    "DUR-05": "After the power had failed, all {n} tasks of all snapshots were whole, and came to "
              "an end.",
}


WHOLE = ("DLV-12", "DLV-13", "KEY-06")
"""What snapshots tell of steps."""


def check(history: History) -> list[Verdict]:
    """Judge each restart and each power failure of the run."""
    ledger = Ledger("what_was_answered_survives", PROMISES)
    whole = history.whole or history
    for spell in whole.spells:
        if spell.effect == "broker_restarted" and spell.to_ns is not None:
            _is_still_true(whole, ledger, "DUR-03", spell.to_ns, spell.to_ns)
    for loss in losses.losses(whole):
        _is_still_true(whole, ledger, "DUR-04", loss.kept_ns, loss.back_ns)
        _is_whole(whole, ledger, loss)
    return ledger.verdicts()


def _is_still_true(history: History, ledger: Ledger, clause: str, kept_ns: int,
                   back_ns: int) -> None:
    """Whatever was answered until `kept_ns` is true of the looks from `back_ns` on."""
    for task_id, looks in history.looks.items():
        after = [look for look in looks if look.asked_ns > back_ns]
        before = [o for o in (*history.submissions.get(task_id, []), *looks,
                              *(o for o in history.operations
                                if o.name == "cancel" and o.task_id == task_id))
                  if o.outcome == "ok" and o.answered_ns <= kept_ns
                  and not o.answer.get("duplicate")]  # that accepted nothing under this id
        if not before or not after:
            continue
        ledger.judged(clause, len(before))
        for answered in before:
            for look in after:
                if wrong := _undone(answered, look):
                    ledger.violated(
                        clause, task_id, f"{_told(answered, task_id)} "
                        f"{at(history, answered.answered_ns)}; the broker was back "
                        f"{at(history, back_ns)} with its data, and {wrong} "
                        f"{at(history, look.answered_ns)}.", answered=answered.answer,
                        age_ms=(back_ns - answered.answered_ns) / 1e6, later=look.answer)
                    break


def _told(answered: Operation, task_id: str) -> str:
    if answered.name == "look":
        return f"Task {task_id} was seen {answered.answer.get('status')!r}"
    return f"The {'submission' if answered.name == 'submit' else 'cancel'} of task {task_id} was " \
           "answered with success"


def _undone(answered: Operation, look: Operation) -> str | None:
    """What of an answer is not true any more; None if all is."""
    was, now = answered.answer, look.answer
    if answered.name == "look" and not was:
        return None
    if not now:
        return "it was not known any more"
    if answered.name == "cancel" and was.get("said") == "cancelled":
        return None if now.get("status") == "cancelled" else f"it was {now.get('status')!r}"
    if answered.name != "look":
        return None
    if now.get("status") not in reachable(was["status"]):
        return f"it was {now.get('status')!r}"
    changed = [field for field in ("attempt", "result", "error_class")
               if was["status"] in TERMINAL and was.get(field) != now.get(field)]
    return f"its {changed[0]} {was.get(changed[0])!r} was {now.get(changed[0])!r}" \
        if changed else None


def _is_whole(history: History, ledger: Ledger, loss: losses.Loss) -> None:
    """Snapshots show no half of a step that they did not show before the power failed as well, and
    what was there when the broker was back has ended."""
    def seen(*, later: bool) -> list[Verdict]:
        return one_way.check(History(history.header, tuple(
            record for record in history.records if not isinstance(record, Snapshot)
            or (record.asked_ns > loss.back_ns) == later)))

    before = {verdict.clause for verdict in seen(later=False) if verdict.status == "violated"}
    for verdict in seen(later=True):
        if verdict.clause in before or verdict.clause not in WHOLE:
            continue
        ledger.judged("DUR-05", verdict.judged)
        for finding in verdict.findings:
            if finding.status == "violated":
                ledger.violated("DUR-05", finding.task_id, f"{verdict.clause}: {finding.sentence}",
                                **finding.evidence)
    for task_id in sorted(losses.doubtful_in(history, loss)):
        _ends(history, ledger, task_id,
              [look for look in history.looks.get(task_id, []) if look.asked_ns > loss.back_ns])


def _ends(history: History, ledger: Ledger, task_id: str, after: Iterable[Operation]) -> None:
    known = [look for look in after if look.answer]
    if not known:
        return  # it is gone as if it had never been
    ledger.judged("DUR-05")
    if evidence.terminal(known[-1]):
        return
    if early := evidence.too_early(history, known[-1]):
        ledger.unknown("DUR-05", task_id, f"Task {task_id} had not ended, but {early}.")
        return
    ledger.violated(
        "DUR-05", task_id, f"Task {task_id} was there {at(history, known[0].answered_ns)}, after "
        f"the power had failed, and was still {known[-1].answer.get('status')!r} "
        f"{ms(known[-1].answered_ns - known[0].answered_ns)} later.", later=known[-1].answer)

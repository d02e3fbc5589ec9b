"""Who executes a task keeps it through the broker's trouble: a lost group, a restart with data.

Judged is each handler that ran all through such a fault, in a process that nothing else befell:
nobody else is given its task while it runs, and the task does not end without it.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import at, holder, ms
from dtq_conformance.history import Execution, History, Spell
from dtq_conformance.justification import befell, patience_ns
from dtq_conformance.verdict import Ledger, Verdict

CLAUSE = {"group_dropped": "WORK-18", "broker_restarted": "WORK-19"}
"""The promise for each effect of a fault."""

WORDS = {"group_dropped": "the consumer groups were lost",
         "broker_restarted": "the broker was restarted with its data"}

PROMISES = {
    "WORK-18": "All {n} tasks that were executed when their group was lost stayed with their "
               "holder.",
    "WORK-19": "All {n} tasks that were executed while the broker was away stayed with their "
               "holder.",
}


def check(history: History) -> list[Verdict]:
    """Judge every execution that lasted from before such a fault until after it."""
    ledger = Ledger("kept_through_broker_trouble", PROMISES)
    for spell in history.spells:
        clause = CLAUSE.get(spell.effect)
        if clause is None:
            continue
        for executions in history.executions.values():
            for execution in executions:
                over_ns = evidence.over_ns(history, execution)
                if (execution.start_ns < spell.from_ns and over_ns > _lasts_until_ns(spell)
                        and befell(history, execution, over_ns) is None):
                    ledger.judged(clause)
                    _keeps_it(history, ledger, clause, spell, execution, executions)
    return ledger.verdicts()


def _lasts_until_ns(spell: Spell) -> int:
    """A group is lost in an instant; a broker that was away has to be back."""
    return spell.from_ns if spell.effect == "group_dropped" else spell.to_ns or spell.from_ns


def _keeps_it(history: History, ledger: Ledger, clause: str, spell: Spell, execution: Execution,
              executions: list[Execution]) -> None:
    task_id, over_ns = execution.task_id, evidence.over_ns(history, execution)
    story = (f"Task {task_id} was executed ({holder(execution)}) from "
             f"{at(history, execution.start_ns)[3:]} when {WORDS[spell.effect]} "
             f"{at(history, spell.from_ns)}")
    others = [e for e in executions if e is not execution
              and execution.start_ns < e.start_ns < over_ns]
    ended = [look for look in history.looks.get(task_id, [])
             if evidence.terminal(look) and look.answered_ns < over_ns]
    if others:
        what, instant_ns = f"it was started beside that as {holder(others[0])}", others[0].start_ns
    elif ended:
        what = f"it was seen {ended[0].answer.get('status')!r} before its handler had ended"
        instant_ns = ended[0].answered_ns
    else:
        return
    stall_ns = evidence.longest_stall_ns(history, execution.start_ns, instant_ns)
    if stall_ns > patience_ns(history):
        ledger.unknown(clause, task_id, f"{story}, and {what} {at(history, instant_ns)}; only the "
                       f"machine's standing still for {ms(stall_ns)} could explain it.",
                       execution=evidence.data(execution))
        return
    ledger.violated(clause, task_id, f"{story}, and {what} {at(history, instant_ns)}.",
                    execution=evidence.data(execution), others=[evidence.data(e) for e in others])

"""The broker's trouble passes by itself: a server that keeps running refuses for a while, or says
nothing.

Judged is that workers take work again without being restarted, that what ends while memory is out
is settled meanwhile, and that a submission which the server refused is answered with what is known.
What follows a restart is judged by what is lost or executed again.
"""

from __future__ import annotations

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import MS, at, holder, ms
from dtq_conformance.history import Execution, History, Life, Spell
from dtq_conformance.justification import befell
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "WORK-15": "All {n} workers that lived through the broker's trouble took new work again within "
               "5 s.",
    "WORK-21": "All {n} attempts that ended while the server was out of memory were settled "
               "meanwhile.",
    "WORK-23": "All {n} submissions that the broker kept from being accepted were answered with "
               "what is known.",
}

AGAIN_MS = 5_000
"""Within this of the broker's recovery, workers take new work again (WORK-15)."""

IDLE_MS = 3_000
"""Who has nothing to do for so long while a task waits does not take it."""

SETTLED_MS = 1_000
"""An attempt that is not settled so long after its handler has ended is held up by something."""


def check(history: History) -> list[Verdict]:
    """Judge every worker and attempt that saw such trouble, and every submission."""
    ledger = Ledger("broker_trouble_passes", PROMISES)
    for spell in history.spells:
        if spell.effect in ("broker_away", "out_of_memory") and spell.to_ns is not None:
            for life in history.lives:
                if life.role == "worker" and life.start_ns < spell.from_ns:
                    _takes_again(history, ledger, life, spell, spell.to_ns)
        if spell.effect == "out_of_memory" and spell.to_ns is not None:
            for executions in history.executions.values():
                for execution in executions:
                    if spell.from_ns < (execution.end_ns or 0) < spell.to_ns:
                        _is_settled(history, ledger, execution, executions, spell)
    for asked in history.submissions.values():
        for operation in asked:
            _says_what_is_known(history, ledger, operation, asked)
    return ledger.verdicts()


# ---------------------------------------------------------------- WORK-15


def _takes_again(history: History, ledger: Ledger, life: Life, spell: Spell, to_ns: int) -> None:
    by_ns = to_ns + AGAIN_MS * MS
    own = [e for each in history.executions.values() for e in each
           if evidence.life(history, e) == life]
    if (life.exit_ns or by_ns) < spell.from_ns:
        return
    if any(to_ns < e.start_ns <= by_ns for e in own):
        ledger.judged("WORK-15")
        return
    if _is_excused(history, life, spell, own, by_ns):
        return
    when = f"when the broker's trouble was over {at(history, to_ns)}"
    if life.exit_ns is not None and life.exit_ns <= by_ns:
        ledger.judged("WORK-15")
        ledger.violated("WORK-15", None, f"{life.name} (pid {life.pid}) ended by itself "
                        f"{at(history, life.exit_ns)}, and so took nothing more {when}.",
                        name=life.name, exit_code=life.exit_code, exit_ns=life.exit_ns)
        return
    waiting = _waiting(history, by_ns)
    idle_ns = by_ns - IDLE_MS * MS
    if not waiting or any(e.start_ns < by_ns and evidence.over_ns(history, e) > idle_ns
                          for e in own):
        return
    ledger.judged("WORK-15")
    story = (f"{life.name} (pid {life.pid}) had nothing to do {when}, and started nothing within "
             f"{ms(AGAIN_MS * MS)}, though task {waiting[0]} waited")
    if evidence.mostly_stalled(history, to_ns, by_ns):
        ledger.unknown("WORK-15", waiting[0], f"{story}; but the machine stood still for "
                       f"{ms(evidence.stalled_ns(history.stalls, to_ns, by_ns))} of that.")
        return
    ledger.violated("WORK-15", waiting[0], f"{story}.", name=life.name, waiting=waiting)


def _is_excused(history: History, life: Life, spell: Spell, own: list[Execution],
                by_ns: int) -> bool:
    """Whether something else kept the worker from taking: it was asked to end, another fault or its
    own work befell it, or the queue was paused."""
    last_ns = by_ns if life.exit_ns is None else min(by_ns, life.exit_ns)
    if life.exit_ns is not None and life.exit_ns <= by_ns and life.asked:
        return True
    return (evidence.may_be_paused(history, spell.from_ns, by_ns)
            or any(other != spell and other.from_ns < by_ns
                   and (life.pid in other.pids or (not other.pids
                        and (other.to_ns or by_ns) > spell.from_ns)) for other in history.spells)
            or any(e.end_ns is None and _ends_its_worker(history, e, last_ns) for e in own))


def _ends_its_worker(history: History, execution: Execution, last_ns: int) -> bool:
    """Whether the payload bade the process die, or hung past its time limit."""
    request = evidence.request_of(history, execution.task_id)
    limit_ms = request.get("timeout_ms")
    return plan.ending(request, execution.attempt) == "dies" or (
        isinstance(limit_ms, int) and last_ns - execution.start_ns > limit_ms * MS)


def _waiting(history: History, by_ns: int) -> list[str]:
    """Tasks that were there to be taken all the time in which an idle worker would have."""
    found = []
    for task_id in history.accepted:
        accepted = next(o for o in history.submissions[task_id] if o.outcome == "ok")
        look, executions = evidence.last_look(history, task_id), history.executions.get(task_id, [])
        if (accepted.answered_ns < by_ns - IDLE_MS * MS and not accepted.request.get("delay_ms")
                and not any(e.start_ns <= by_ns for e in executions)
                and look is not None and look.answered_ns > by_ns and look.answer
                and (executions or not evidence.terminal(look))):
            found.append(task_id)
    return found


# ---------------------------------------------------------------- WORK-21


def _is_settled(history: History, ledger: Ledger, execution: Execution,
                executions: list[Execution], spell: Spell) -> None:
    """A look while memory is still out shows the task in another state than `running` with the
    attempt that has ended."""
    task_id, ended_ns = execution.task_id, execution.end_ns or 0
    looks = [look for look in history.looks.get(task_id, [])
             if look.asked_ns > ended_ns and look.answered_ns < (spell.to_ns or 0)]
    if (not looks or execution.outcome == "cancelled"
            or evidence.superseded(execution, executions)
            or befell(history, execution, looks[-1].answered_ns) is not None):
        return
    if any(look.answer.get("status") not in (None, "running")
           or (look.answer.get("attempt") or 0) > execution.attempt for look in looks):
        ledger.judged("WORK-21")
        return
    held = [look for look in looks if look.answer.get("status") == "running"
            and look.answer.get("attempt") == execution.attempt]
    if not held or (late_ns := held[-1].asked_ns - ended_ns) < SETTLED_MS * MS:
        return
    ledger.judged("WORK-21")
    story = (f"The handler of task {task_id} ended {execution.outcome} {at(history, ended_ns)} "
             f"({holder(execution)}), while the server was out of memory from "
             f"{at(history, spell.from_ns)[3:]}; {ms(late_ns)} later that was not recorded: it was "
             "still 'running'")
    if evidence.mostly_stalled(history, ended_ns, held[-1].asked_ns):
        ledger.unknown("WORK-21", task_id, f"{story}; but the machine stood still for most of it.")
        return
    ledger.violated("WORK-21", task_id, f"{story}.", execution=evidence.data(execution),
                    look=held[-1].answer)


# ---------------------------------------------------------------- WORK-23


def _says_what_is_known(history: History, ledger: Ledger, operation: Operation,
                        asked: list[Operation]) -> None:
    """BROKER_UNAVAILABLE leaves nothing; and where each sending was refused, that is known."""
    task_id, code = operation.task_id or "", operation.answer.get("code")
    when = at(history, operation.answered_ns)
    if operation.outcome == "refused" and code == "BROKER_UNAVAILABLE":
        ledger.judged("WORK-23")
        if all(other.outcome == "refused" for other in asked) and _is_there(history, operation):
            ledger.violated("WORK-23", task_id, f"The submission of task {task_id} was refused "
                            f"{when} with {code}, as surely not carried out, and yet the task was "
                            "there afterwards.", answer=operation.answer)
        return
    spell = _refused_by(history, operation)
    if spell is None or not (operation.outcome == "unknown" or code == "BROKER_UNREACHABLE"):
        return
    ledger.judged("WORK-23")
    story = (f"The submission of task {task_id} was asked {at(history, operation.asked_ns)}, while "
             f"the server answered each such request with {spell.detail['refused'][0]}; {when} it "
             f"was said that nobody can say ({operation.answer.get('error') or code})")
    if evidence.mostly_stalled(history, operation.asked_ns, operation.answered_ns):
        ledger.unknown("WORK-23", task_id, f"{story}; but the machine stood still for most of it.")
        return
    ledger.violated("WORK-23", task_id, f"{story}.", answer=operation.answer)


def _is_there(history: History, operation: Operation) -> bool:
    task_id = operation.task_id or ""
    return bool(history.executions.get(task_id)) or any(
        look.answer for look in history.looks.get(task_id, [])
        if look.asked_ns > operation.answered_ns)


def _refused_by(history: History, operation: Operation) -> Spell | None:
    """The time, if any, in which the server was seen to refuse writes at both ends, and in which
    this was asked and answered."""
    return next((spell for spell in history.spells
                 if len(spell.detail.get("refused", ())) == 2 and all(spell.detail["refused"])
                 and spell.from_ns < operation.asked_ns
                 and operation.answered_ns < (spell.to_ns or 0)), None)

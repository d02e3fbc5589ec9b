"""Nothing accepted is lost: each accepted task stays known, is executed, and comes to an end.

A task whose submissions all had an unknown outcome may be absent; once it was seen, it counts.
"""

from __future__ import annotations

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import at, holder
from dtq_conformance.history import Execution, History
from dtq_conformance.justification import befell
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "TASK-01": "All {n} accepted tasks could be looked up with the values they were submitted "
               "with.",
    "DLV-01": "All {n} accepted tasks came to an end.",
    "DLV-02": "All {n} tasks reported as succeeded were executed to a good end.",
    "DLV-03": "All {n} executions whose holder died were followed by another or by a final state.",
    "DLV-04": "All {n} tasks that lost their holder twice were redelivered again.",
    "DUR-01": "All {n} accepted tasks came to an end, whatever worker was killed.",
    "DUR-02": "All {n} accepted tasks came to an end, though the broker was killed.",
    "DLV-30": "All {n} handlers that hung past their time limit and two leases lost their task.",
    "WORK-16": "All {n} accepted tasks came to an end that is theirs, though scripts were lost.",
    "WORK-17": "All {n} accepted tasks came to an end, though the consumer groups were lost.",
    "WORK-22": "All {n} accepted tasks came to an end, whatever trouble the broker had.",
}

TROUBLE = {"broker_away": ("WORK-22",), "broker_restarted": ("DUR-02", "WORK-16", "WORK-22"),
           "group_dropped": ("WORK-17", "WORK-22"), "out_of_memory": ("WORK-22",),
           "scripts_flushed": ("WORK-16", "WORK-22")}
"""The promises that no accepted task is lost through the broker, for each effect of a fault. A
server that was restarted has lost its scripts too."""

REDELIVERY_ALLOWANCE_MS = 1000
"""Within this, beyond a reap interval, an ended lease is redelivered where a worker has room."""


def check(history: History) -> list[Verdict]:
    """Judge every accepted task, and every other that was seen or executed."""
    ledger = Ledger("nothing_lost", PROMISES)
    accepted = set(history.accepted)
    for task_id in history.submissions:
        if task_id in accepted:
            _stays_known(history, ledger, task_id)
        if task_id in accepted or _seen(history, task_id):
            _comes_to_an_end(history, ledger, task_id)
            _was_executed(history, ledger, task_id)
            _outlives_its_holders(history, ledger, task_id)
            for execution in history.executions.get(task_id, []):
                _is_not_held_for_ever(history, ledger, execution)
    if any(life.role == "worker" and life.signal == 9 for life in history.lives):
        ledger.same("DUR-01", "DLV-01")
    effects = {spell.effect for spell in history.spells}
    clauses = {clause for effect in effects for clause in TROUBLE.get(effect, ())}
    for clause in sorted(clauses):
        ledger.same(clause, "DLV-01")
    for task_id in history.accepted if "WORK-16" in clauses else ():
        _is_not_failed(history, ledger, task_id)
    return ledger.verdicts()


def _seen(history: History, task_id: str) -> bool:
    return task_id in history.executions or any(
        look.answer for look in history.looks.get(task_id, []))


def _stays_known(history: History, ledger: Ledger, task_id: str) -> None:
    accepted = next(o for o in history.submissions[task_id] if o.outcome == "ok")
    looks = [look for look in history.looks.get(task_id, [])
             if look.asked_ns >= accepted.answered_ns]
    if not looks:
        ledger.unknown("TASK-01", task_id, f"No look at task {task_id} was answered after it was "
                       f"accepted {at(history, accepted.answered_ns)}.")
        return
    ledger.judged("TASK-01")
    for look in looks:
        if not look.answer:
            ledger.violated("TASK-01", task_id, f"Task {task_id} was accepted "
                            f"{at(history, accepted.answered_ns)}, and the target did not know it "
                            f"{at(history, look.answered_ns)}.", answered_ns=look.answered_ns)
            return
        for field in ("task_type", "priority", "max_attempts"):
            asked, shown = accepted.request.get(field), look.answer.get(field)
            if asked is not None and field in look.answer and shown != asked:
                ledger.violated("TASK-01", task_id, f"Task {task_id} was submitted with {field} "
                                f"{asked!r} and was shown with {shown!r} "
                                f"{at(history, look.answered_ns)}.",
                                field=field, submitted=asked, shown=shown)
                return


def _comes_to_an_end(history: History, ledger: Ledger, task_id: str) -> None:
    look = evidence.last_look(history, task_id)
    if look is None and task_id in history.watches:
        _is_witnessed_to_end(history, ledger, task_id, history.watches[task_id][-1])
        return
    if look is None:
        ledger.unknown("DLV-01", task_id, f"No look at task {task_id} was answered: what became "
                       "of it cannot be told.")
        return
    ledger.judged("DLV-01")
    if evidence.terminal(look):
        _ended_by_its_handler(history, ledger, task_id, look)
        return
    early = evidence.too_early(history, look)
    if early is not None and look.answer:
        ledger.unknown("DLV-01", task_id,
                       f"Task {task_id} is still {look.answer.get('status')!r} "
                       f"{at(history, look.answered_ns)}, but {early}.")
        return
    ledger.violated("DLV-01", task_id, story(history, task_id, look),
                    status=look.answer.get("status"), looked_ns=look.answered_ns,
                    executions=[evidence.data(e) for e in history.executions.get(task_id, [])])


def _is_witnessed_to_end(history: History, ledger: Ledger, task_id: str,
                         watch: Operation) -> None:
    """The same of a target that shows no tasks: its handlers' own lines must tell of an end."""
    if evidence.ended_as_witnessed(history, task_id):
        ledger.judged("DLV-01")
        return
    early = evidence.too_early(history, watch)
    if early is not None:
        ledger.unknown("DLV-01", task_id, f"Task {task_id} was not seen to end "
                       f"{at(history, watch.answered_ns)}, but {early}.")
        return
    ledger.judged("DLV-01")
    ledger.violated("DLV-01", task_id, story(history, task_id, watch),
                    looked_ns=watch.answered_ns,
                    executions=[evidence.data(e) for e in history.executions.get(task_id, [])])


def story(history: History, task_id: str, look: Operation) -> str:
    """How a task was lost, from its acceptance to where it was seen last."""
    accepted = [o for o in history.submissions[task_id] if o.outcome == "ok"]
    began = (f"Task {task_id} was accepted {at(history, accepted[0].answered_ns)}" if accepted
             else f"Task {task_id} was submitted without an answer")
    executions = history.executions.get(task_id, [])
    if executions:
        told = "; ".join(_told(history, execution) for execution in executions)
        times = "once" if len(executions) == 1 else f"{len(executions)} times"
        began += f", was started {times} ({told}) and never again"
        missing = f"no execution of attempt {max(e.attempt for e in executions) + 1} followed"
        if executions[-1].outcome == "ok":
            missing = f"although attempt {executions[-1].attempt} had ended well"
    else:
        began += " and was never started"
        missing = "no execution was witnessed"
    if look.name == "watch":
        again = "no further" if executions else "no"
        return (f"{began}: {again} execution was witnessed until "
                f"{at(history, look.answered_ns)[3:]}.")
    if not look.answer:
        return (f"{began}: the target does not know it any more "
                f"{at(history, look.answered_ns)}, {missing}.")
    stays = "is" if evidence.terminal(look) else "is still"
    return (f"{began}: it {stays} {look.answer.get('status')!r} "
            f"{at(history, look.answered_ns)}, {missing}.")


def _told(history: History, execution: Execution) -> str:
    if execution.end_ns is not None:
        return f"{holder(execution)}, ended {execution.outcome} {at(history, execution.end_ns)}"
    return f"{holder(execution)}, which {evidence.death_in_words(history, execution)}"


def _ended_by_its_handler(history: History, ledger: Ledger, task_id: str,
                          look: Operation) -> None:
    """A record that says how the handler failed needs an execution in which it did."""
    answer = look.answer
    attempt = answer.get("attempt", 0)
    planned = plan.ending(evidence.request_of(history, task_id), attempt)
    if (answer.get("status") not in ("failed", "dead_lettered") or planned in ("ok", "dies", None)
            or answer.get("error_class") == "WorkerLost"):
        return
    if any(execution.attempt == attempt for execution in history.executions.get(task_id, [])):
        return
    ledger.violated("DLV-01", task_id, f"Task {task_id} is reported as {answer.get('status')} by "
                    f"its handler's {answer.get('error_class')} in attempt {attempt} "
                    f"{at(history, look.answered_ns)}, but no execution of attempt {attempt} was "
                    "witnessed: it was put away without being executed.",
                    status=answer.get("status"), error_class=answer.get("error_class"))


def _is_not_failed(history: History, ledger: Ledger, task_id: str) -> None:
    """What ended well, within its time limit, is not put away as failed for want of a script. One
    whose worker was lost after that may be, as WorkerLost."""
    look = evidence.last_look(history, task_id)
    if (look is None or look.answer.get("status") not in ("failed", "dead_lettered")
            or look.answer.get("error_class") == "WorkerLost"):
        return
    for execution in history.executions.get(task_id, []):
        if (execution.attempt == look.answer.get("attempt") and execution.outcome == "ok"
                and execution.end_ns is not None
                and plan.ending(evidence.request_of(history, task_id), execution.attempt) == "ok"
                and befell(history, execution, execution.end_ns) is None):
            ledger.violated("WORK-16", task_id, f"Task {task_id} ended ok "
                            f"{at(history, execution.end_ns)} ({holder(execution)}), and is "
                            f"reported as {look.answer.get('status')} by "
                            f"{look.answer.get('error_class')} {at(history, look.answered_ns)}, "
                            "in a run in which scripts were lost.",
                            execution=evidence.data(execution), answer=look.answer)


def _was_executed(history: History, ledger: Ledger, task_id: str) -> None:
    look = evidence.last_look(history, task_id)
    if look is None or look.answer.get("status") != "succeeded":
        return
    ledger.judged("DLV-02")
    good = [e for e in history.executions.get(task_id, []) if e.outcome == "ok"]
    result = look.answer.get("result")
    named = result.get("attempt") if isinstance(result, dict) and plan.tells_its_holder(
        evidence.request_of(history, task_id)) else None
    if not good or (named is not None and named not in [e.attempt for e in good]):
        what = "no execution" if not good or named is None else f"no execution of attempt {named}"
        ledger.violated("DLV-02", task_id, f"Task {task_id} is reported as succeeded "
                        f"{at(history, look.answered_ns)}, but {what} of it was witnessed to end "
                        "well.", result=result,
                        executions=[evidence.data(e)
                                    for e in history.executions.get(task_id, [])])


def _outlives_its_holders(history: History, ledger: Ledger, task_id: str) -> None:
    look = evidence.last_word(history, task_id)
    executions = history.executions.get(task_id, [])
    lost = [(e, gone_ns) for e in executions
            if (gone_ns := evidence.lost_holder_ns(history, e)) is not None]
    most = evidence.budget(history, task_id)
    for count, (execution, gone_ns) in enumerate(lost, start=1):
        spent = most is not None and execution.attempt >= most
        clauses = [clause for clause, applies in (("DLV-03", not spent), ("DLV-04", count >= 2))
                   if applies]
        # a superseded holder that starts late may do so after the attempt that follows it
        followed = any(e.start_ns > execution.start_ns or e.attempt > execution.attempt
                       for e in executions)
        if not followed and (look is None or look.asked_ns <= gone_ns):
            for clause in clauses:
                ledger.unknown(clause, task_id, f"The holder of task {task_id}, "
                               f"{holder(execution)}, died {at(history, gone_ns)}, and no look "
                               "came after that.")
            continue
        for clause in clauses:
            ledger.judged(clause)
            if not followed and look is not None and not _put_away(look, most):
                _not_again(history, ledger, clause, task_id, look)


def _put_away(look: Operation, most: int | None) -> bool:
    """True if the record says why no execution follows: cancelled, expired, or budget spent."""
    status = look.answer.get("status")
    if status in ("dead_lettered", "failed"):
        return most is None or look.answer.get("attempt", 0) >= most
    return status in ("cancelled", "expired")


def _not_again(history: History, ledger: Ledger, clause: str, task_id: str,
               look: Operation) -> None:
    early = evidence.too_early(history, look)
    unfinished = look.name == "watch" or (look.answer and not evidence.terminal(look))
    if early is not None and unfinished:
        ledger.unknown(clause, task_id, f"Task {task_id} was not executed again after its holder "
                       f"died, but {early}.")
        return
    ledger.violated(clause, task_id, story(history, task_id, look),
                    status=look.answer.get("status"), looked_ns=look.answered_ns,
                    executions=[evidence.data(e) for e in history.executions.get(task_id, [])])


def _is_not_held_for_ever(history: History, ledger: Ledger, hung: Execution) -> None:
    """A lease is last renewed when a task's time limit and one lease have passed since it was
    taken; when that renewal has run out too, another worker takes the task, if one has room."""
    limit_ms = evidence.request_of(history, hung.task_id).get("timeout_ms")
    if not isinstance(limit_ms, int) or any(o.name == "pause" for o in history.operations):
        return
    timing = history.header.timing
    due_ns = hung.start_ns + (limit_ms + 2 * timing.lease_ms + timing.reap_ms
                              + REDELIVERY_ALLOWANCE_MS) * evidence.MS
    due_ns += evidence.stalled_ns(history.stalls, hung.start_ns, due_ns)
    over_ns = evidence.over_ns(history, hung)
    if over_ns <= due_ns:
        return
    if any(hung.start_ns < e.start_ns <= due_ns for e in history.executions[hung.task_id]):
        ledger.judged("DLV-30")
        return
    held = [look for look in history.looks.get(hung.task_id, [])
            if due_ns < look.asked_ns < over_ns and look.answer.get("status") == "running"]
    if held and _has_room(history, hung, hung.start_ns, due_ns):
        ledger.judged("DLV-30")
        ledger.violated("DLV-30", hung.task_id, f"Task {hung.task_id}, whose time limit is "
                        f"{limit_ms} ms, was started {at(history, hung.start_ns)} "
                        f"({holder(hung)}), whose handler hung, and was still 'running' there "
                        f"{at(history, held[0].answered_ns)}, though another worker had room.",
                        execution=evidence.data(hung), due_ns=due_ns)


def _has_room(history: History, hung: Execution, from_ns: int, to_ns: int) -> bool:
    """Whether another worker, one that has worked before, lived and had nothing in hand for the
    last lease of that time."""
    last_ns = to_ns - history.header.timing.lease_ms * evidence.MS
    for life in history.lives:
        own = [e for each in history.executions.values() for e in each
               if evidence.life(history, e) == life]
        if (life.role == "worker" and evidence.life(history, hung) != life
                and (life.exit_ns is None or life.exit_ns > to_ns)
                and any(e.start_ns < last_ns for e in own)
                and not any(e.start_ns < to_ns and evidence.over_ns(history, e) > last_ns
                            for e in own)
                and not any(life.pid in spell.pids and spell.from_ns < to_ns
                            and (spell.to_ns or to_ns) > from_ns for spell in history.spells)):
            return True
    return False

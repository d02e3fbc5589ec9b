"""A stop in good order: nothing new is started, what can be finished is, the rest is given back.

Judged are the SIGTERMs that faults sent, and the exit code of each worker that the lab asked to
stop. Of which tasks a worker had in hand, the broker told at the instant of the signal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import MS, at, holder, ms
from dtq_conformance.history import Execution, Fault, History, Life
from dtq_conformance.justification import befell
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "STOP-01": "All {n} workers that were asked to stop started nothing new and exited with "
               "code 0 in time.",
    "STOP-02": "All {n} executions that a stopping worker could finish were finished and "
               "recorded.",
    "STOP-03": "All {n} tasks that a stopping worker had not started were executed elsewhere "
               "under the same attempt number.",
    "STOP-04": "All {n} executions that a stopping worker could not finish were redelivered.",
}

EXIT_ALLOWANCE_MS = 2000
"""Beyond the drain limit: the last settlements' round trips, the interpreter's own end, and the
lab's hearing of the exit. It is far below any drain limit that would hide a worker that hangs."""

SIGNAL_ALLOWANCE_MS = 250
"""A signal is sent before it is handled: a start within this time after it was already on its
way, and one within it before may have come after the look at its hands. And an execution whose
planned end is this close to the drain limit can go either way."""


@dataclass(frozen=True)
class Stop:
    """One SIGTERM to one worker. The two sets are None if the broker was not asked."""

    life: Life
    at_ns: int
    in_hand: frozenset[str] | None
    unstarted: frozenset[str] | None


def check(history: History) -> list[Verdict]:
    """Judge each SIGTERM that a fault sent, and each exit that the lab asked for."""
    ledger = Ledger("drained_on_stop", PROMISES)
    stops = _stops(history)
    for lived in history.lives:
        asked = lived.asked == "terminate" and lived.role == "worker"
        if (asked and lived not in [stop.life for stop in stops] and lived.exit_ns is not None
                and not _killed(history, lived)):
            ledger.judged("STOP-01")
            _exits_well(history, ledger, lived)
    for stop in stops:
        _stops_in_time(history, ledger, stop)
        _starts_nothing_new(history, ledger, stop)
        for execution in _open(history, stop):
            _finishes_or_lets_go(history, ledger, stop, execution)
        for task_id in sorted(stop.unstarted or ()):
            _gives_back(history, ledger, stop, task_id)
    return ledger.verdicts()


def _stops(history: History) -> list[Stop]:
    """Every SIGTERM of a fault, with what was in hand; a signal that did not bite counts not."""
    found = []
    for fault in history.of(Fault):
        if fault.effect != "terminated" or fault.phase != "bit":
            continue
        for pid in fault.pids:
            lived = history.life_of(pid, fault.at_ns)
            if lived is not None:
                found.append(Stop(lived, fault.at_ns, _ids(fault, "in_hand"),
                                  _ids(fault, "unstarted")))
    return found


def _ids(fault: Fault, key: str) -> frozenset[str] | None:
    return frozenset(fault.detail[key]) if key in fault.detail else None


def _killed(history: History, lived: Life) -> bool:
    """True if a fault killed this process, or a task in it did as its payload bade it: then its
    exit says nothing about its stopping."""
    by_fault = any(spell.effect == "killed" and lived.pid in spell.pids
                   and lived.start_ns <= spell.from_ns <= (lived.exit_ns or history.end_ns)
                   for spell in history.spells)
    return by_fault or (lived.exit_ns is not None and any(
        execution.end_ns is None and plan.ending(
            evidence.request_of(history, execution.task_id), execution.attempt) == "dies"
        for execution in _of_process(history, lived)))


def _exits_well(history: History, ledger: Ledger, lived: Life) -> None:
    if lived.exit_code != 0:
        how = (f"was ended by signal {lived.signal}" if lived.signal is not None
               else f"exited with code {lived.exit_code}")
        ledger.violated("STOP-01", None, f"{lived.name} (pid {lived.pid}) was asked to stop and "
                        f"{how} {at(history, lived.exit_ns or 0)} instead of exiting with code 0.",
                        name=lived.name, pid=lived.pid, exit_code=lived.exit_code,
                        signal=lived.signal)


def _stops_in_time(history: History, ledger: Ledger, stop: Stop) -> None:
    lived = stop.life
    if _killed(history, lived):
        return
    over_ns = history.end_ns if lived.exit_ns is None else lived.exit_ns
    took_ns = over_ns - stop.at_ns
    limit_ns = (history.header.timing.drain_ms + EXIT_ALLOWANCE_MS) * MS
    limit_ns += evidence.stalled_ns(history.stalls, stop.at_ns, over_ns)
    who = (f"{lived.name} (pid {lived.pid}) was asked to stop {at(history, stop.at_ns)}")
    if lived.exit_ns is None and took_ns <= limit_ns:
        ledger.unknown("STOP-01", None, f"{who}, and the history ends {ms(took_ns)} later, before "
                       "its drain limit.", pid=lived.pid)
        return
    ledger.judged("STOP-01")
    if took_ns > limit_ns:
        what = "still runs" if lived.exit_ns is None else "exited"
        ledger.violated("STOP-01", None, f"{who} and {what} {ms(took_ns)} later; its drain limit "
                        f"is {history.header.timing.drain_ms} ms, and {ms(limit_ns)} with all "
                        "allowances.", pid=lived.pid, took_ms=took_ns // MS)
    if lived.exit_ns is not None:
        _exits_well(history, ledger, lived)


def _of_process(history: History, lived: Life) -> Iterator[Execution]:
    for executions in history.executions.values():
        for execution in executions:
            if evidence.life(history, execution) == lived:
                yield execution


def _starts_nothing_new(history: History, ledger: Ledger, stop: Stop) -> None:
    if stop.in_hand is None:
        return
    for execution in _of_process(history, stop.life):
        late_ns = execution.start_ns - stop.at_ns
        if late_ns <= SIGNAL_ALLOWANCE_MS * MS or execution.task_id in stop.in_hand:
            continue
        ledger.violated("STOP-01", execution.task_id, f"{stop.life.name} (pid {stop.life.pid}) "
                        f"was asked to stop {at(history, stop.at_ns)} and started task "
                        f"{execution.task_id} {ms(late_ns)} later, which it had not in hand then.",
                        execution=evidence.data(execution), asked_ns=stop.at_ns)


def _open(history: History, stop: Stop) -> list[Execution]:
    """What the process had started and not ended at the signal, or started after it."""
    return [execution for execution in _of_process(history, stop.life)
            if execution.end_ns is None or execution.end_ns > stop.at_ns]


def _finishes_or_lets_go(history: History, ledger: Ledger, stop: Stop,
                         execution: Execution) -> None:
    if _killed(history, stop.life) or _was_cancelled(history, execution):
        return
    limit_ns = stop.at_ns + history.header.timing.drain_ms * MS
    allowance_ns = SIGNAL_ALLOWANCE_MS * MS + evidence.stalled_ns(
        history.stalls, execution.start_ns, limit_ns)
    request = evidence.request_of(history, execution.task_id)
    planned_ms = plan.duration_ms(request, execution.attempt) if request else None
    if planned_ms is not None and planned_ms > request.get("timeout_ms", planned_ms):
        planned_ms = None  # its time limit comes first
    planned_ns = None if planned_ms is None else execution.start_ns + planned_ms * MS
    if plan.ending(request, execution.attempt) == "dies":
        return
    if execution.outcome in ("ok", "failed"):
        if execution.end_ns is not None and execution.end_ns <= limit_ns - allowance_ns:
            _is_recorded(history, ledger, stop, execution)
        return
    if planned_ns is None:
        return
    if planned_ns <= limit_ns - allowance_ns:
        ledger.judged("STOP-02")
        ledger.violated("STOP-02", execution.task_id, f"{_asked(history, stop)} while task "
                        f"{execution.task_id} ({holder(execution)}) had "
                        f"{ms(planned_ns - stop.at_ns)} left to run, within the drain limit of "
                        f"{history.header.timing.drain_ms} ms, but the task was not finished.",
                        execution=evidence.data(execution), asked_ns=stop.at_ns)
    elif planned_ns > limit_ns + allowance_ns:
        _is_redelivered(history, ledger, stop, execution)


def _asked(history: History, stop: Stop) -> str:
    return f"{stop.life.name} (pid {stop.life.pid}) was asked to stop {at(history, stop.at_ns)}"


def _is_recorded(history: History, ledger: Ledger, stop: Stop, execution: Execution) -> None:
    """What was finished is not executed again, and its record says so."""
    task_id = execution.task_id
    executions = history.executions[task_id]
    if evidence.superseded(execution, executions):
        return
    if execution.outcome == "failed":
        ledger.judged("STOP-02")  # what follows a failure is judged with the attempts
        return
    finished = (f"{_asked(history, stop)} and finished task {task_id} ({holder(execution)}) "
                f"{at(history, execution.end_ns or 0)}")
    again = [e for e in executions if e.start_ns > (execution.end_ns or 0)]
    befallen = befell(history, execution, again[0].start_ns) if again else None
    if befallen is not None and befallen.cause != "died":
        return  # its exit is what it was asked for; anything else may have lost the record
    if _was_out_of_reach(history, stop, execution):
        return
    ledger.judged("STOP-02")
    look = evidence.last_look(history, task_id)
    if again:
        ledger.violated("STOP-02", task_id, f"{finished}, but did not record it: it was executed "
                        f"again {at(history, again[0].start_ns)} ({holder(again[0])}).",
                        execution=evidence.data(execution), again=evidence.data(again[0]))
    elif look is not None and not evidence.terminal(look):
        ledger.violated("STOP-02", task_id, f"{finished}, but did not record it: it is "
                        f"{look.answer.get('status')!r} {at(history, look.answered_ns)}.",
                        execution=evidence.data(execution), answer=look.answer)


def _was_cancelled(history: History, execution: Execution) -> bool:
    """Whether a cancellation that was asked for may have ended it."""
    return execution.outcome == "cancelled" and any(
        o.name == "cancel" and o.task_id == execution.task_id and o.outcome != "refused"
        and o.asked_ns < (execution.end_ns or 0) for o in history.operations)


def _was_out_of_reach(history: History, stop: Stop, execution: Execution) -> bool:
    """Whether the broker was away, or cut off, between the end of the handler and the exit: then
    it could not be told, and a worker waits for it no longer than its drain limit."""
    exit_ns = history.end_ns if stop.life.exit_ns is None else stop.life.exit_ns
    return any(spell.from_ns <= exit_ns and (spell.to_ns or exit_ns) >= (execution.end_ns or 0)
               and (spell.effect in ("broker_away", "broker_restarted")
                    or (spell.effect in ("cut", "reply_lost") and execution.pid in spell.pids))
               for spell in history.spells)


def _is_redelivered(history: History, ledger: Ledger, stop: Stop, execution: Execution) -> None:
    task_id = execution.task_id
    look = evidence.last_look(history, task_id)
    story = (f"{_asked(history, stop)} and could not finish task {task_id} ({holder(execution)}) "
             f"within its drain limit")
    later = [e for e in history.executions[task_id]
             if e.start_ns > execution.start_ns and e.start_ns > stop.at_ns]
    if later:
        ledger.judged("STOP-04")
        if later[0].attempt <= execution.attempt:
            ledger.violated("STOP-04", task_id, f"{story}; it was executed again as "
                            f"{holder(later[0])} {at(history, later[0].start_ns)}, whose number "
                            "is not higher.", execution=evidence.data(execution),
                            again=evidence.data(later[0]))
        return
    if look is None:
        ledger.unknown("STOP-04", task_id, f"{story}, and no look at it was answered.")
        return
    status = look.answer.get("status")
    early = evidence.too_early(history, look)
    if early is not None and look.answer and not evidence.terminal(look):
        ledger.unknown("STOP-04", task_id, f"{story}; it is {status!r}, but {early}.")
        return
    ledger.judged("STOP-04")
    most = evidence.budget(history, task_id)
    spent = status in ("dead_lettered", "failed") and most is not None and (
        look.answer.get("attempt", 0) >= most)
    if status not in ("cancelled", "expired") and not spent:
        became = f"is {status!r}" if look.answer else "is not known any more"
        ledger.violated("STOP-04", task_id, f"{story}; it was not executed again and {became} "
                        f"{at(history, look.answered_ns)}.",
                        execution=evidence.data(execution), answer=look.answer)


def _gives_back(history: History, ledger: Ledger, stop: Stop, task_id: str) -> None:
    executions = history.executions.get(task_id, [])
    mine = [e for e in executions if evidence.life(history, e) == stop.life
            and e.start_ns > stop.at_ns - SIGNAL_ALLOWANCE_MS * MS]
    if mine or _killed(history, stop.life):
        return
    before = max((e.attempt for e in executions if e.start_ns <= stop.at_ns), default=0)
    after = [e for e in executions if e.start_ns > stop.at_ns]
    story = f"{_asked(history, stop)} with task {task_id} in hand, not started"
    if after:
        ledger.judged("STOP-03")
        if after[0].attempt != before + 1:
            ledger.violated("STOP-03", task_id, f"{story}; it was next started as "
                            f"{holder(after[0])} {at(history, after[0].start_ns)}, not as attempt "
                            f"{before + 1}: the attempt was spent.", next=evidence.data(after[0]))
        return
    look = evidence.last_look(history, task_id)
    early = None if look is None else evidence.too_early(history, look)
    if look is None or (early is not None and look.answer and not evidence.terminal(look)):
        ledger.unknown("STOP-03", task_id, f"{story}; it was not started elsewhere, but "
                       f"{early or 'no look at it was answered'}.")
        return
    ledger.judged("STOP-03")
    status = look.answer.get("status")
    if status not in ("cancelled", "expired"):
        became = f"is {status!r}" if look.answer else "is not known any more"
        ledger.violated("STOP-03", task_id, f"{story}; it was never started elsewhere and {became} "
                        f"{at(history, look.answered_ns)}.", answer=look.answer)

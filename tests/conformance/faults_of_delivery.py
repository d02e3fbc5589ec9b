"""Ways to make a good history bad in its delivery, which a checker must find.

Comes in: a good history and a random source. Goes out: the records of a bad one, or None where the
history offers no place for that fault. `FAULTS` has them by checker, with the broken clause.
"""

from __future__ import annotations

import random

from dtq_conformance import evidence
from dtq_conformance.history import Execution, Fault, History, Witness
from dtq_conformance.justification import befell, what_befell
from dtq_conformance.key_table import LEVEL, TASK, KeyGroup
from dtq_conformance.operation import Operation
from msgspec.structs import replace

from tests.conformance.alterations import (
    OTHER_PID,
    STRANGER,
    Records,
    Seed,
    after,
    asked,
    changed,
    executions,
    is_line_of,
    keys,
    lines,
    pick,
    seen,
    status_of,
    undisturbed,
    with_status,
    without,
)
from tests.conformance.simulation import LEASE, MS

# nothing_lost -----------------------------------------------------------------------------------

def forgotten(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, history.accepted)
    return changed(history, lambda r: replace(r, answer={}) if isinstance(r, Operation)
                   and r.name == "look" and r.task_id == task_id else r)


def never_started(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, with_status(history, "succeeded"))
    if task_id is None:
        return None
    records = without(list(history.records), history.executions[task_id])
    return seen(records, task_id, status="queued", result=None, attempt=1)


def not_redelivered(history: History, drawn: random.Random) -> Records | None:
    lost = pick(drawn, [e for e in executions(history) if after(history, e)
                        and evidence.lost_holder_ns(history, e) is not None])
    if lost is None:
        return None
    records = without(list(history.records), after(history, lost))
    return seen(records, lost.task_id, from_ns=lost.start_ns, status="running",
                attempt=lost.attempt, result=None, error_class=None)


def reported_without_an_end(history: History, drawn: random.Random) -> Records | None:
    good = pick(drawn, undisturbed(history))
    if good is None or sum(e.outcome == "ok" for e in history.executions[good.task_id]) > 1:
        return None
    return [r for r in history.records if not (
        isinstance(r, Witness) and r.event == "end" and is_line_of(r, good))]


def shown_with_another_priority(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, history.accepted)
    return seen(list(history.records), task_id, priority=-1)


def failed_though_it_ended_well(history: History, drawn: random.Random) -> Records | None:
    """The broker was restarted, and had no scripts then."""
    good = pick(drawn, undisturbed(history))
    if good is None or all(spell.effect != "broker_restarted" for spell in history.spells):
        return None
    return seen(list(history.records), good.task_id, from_ns=good.start_ns,
                status="dead_lettered", attempt=good.attempt, error_class="NoScriptError")


def held_by_one_that_hangs(history: History, drawn: random.Random) -> Records | None:
    """Nobody is given the task of a handler that hangs, and it is seen with it at the end."""
    hung = pick(drawn, [e for e in executions(history)
                        if "block" in str(evidence.request_of(history, e.task_id))
                        and after(history, e)])
    if hung is None or not any(
            life.pid != hung.pid and (life.exit_ns or 0) > hung.start_ns + 5 * LEASE
            and _is_idle_from(history, life.pid, hung.start_ns + 2 * LEASE)
            for life in history.lives) or history.spells or any(
                o.name == "pause" for o in history.operations):
        return None
    records = without(list(history.records), [hung, *after(history, hung)])
    records += lines(hung, start_ns=hung.start_ns, end_ns=history.end_ns + MS)
    return seen(records, hung.task_id, from_ns=hung.start_ns, status="running", result=None,
                attempt=hung.attempt, error_class=None)


def _is_idle_from(history: History, pid: int, at_ns: int) -> bool:
    own = [e for e in executions(history) if e.pid == pid and "block" not in str(
        evidence.request_of(history, e.task_id))]
    return bool(own) and all(evidence.over_ns(history, e) < at_ns for e in own)


# nothing_invented -------------------------------------------------------------------------------

def submitted_by_nobody(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, history.executions)
    return changed(history, lambda r: None if isinstance(r, Operation) and r.task_id == task_id
                   else r)


def refused_and_executed(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, history.executions)
    return changed(history, lambda r: replace(r, outcome="refused") if isinstance(r, Operation)
                   and (r.name, r.task_id) == ("submit", task_id) else r)


def accepted_outside_the_limits(history: History, drawn: random.Random) -> Records | None:
    return asked(list(history.records), pick(drawn, history.accepted), max_attempts=11)


def refused_without_the_field(history: History, drawn: random.Random) -> Records | None:
    refused = pick(drawn, [o for o in history.operations if o.answer.get("code") == "INVALID"])
    return refused and changed(history, lambda r: replace(
        refused, answer={"code": "INVALID", "message": "no"}) if r is refused else r)


# duplicates_justified ---------------------------------------------------------------------------

def executed_again_after_success(history: History, drawn: random.Random) -> Records | None:
    good = pick(drawn, undisturbed(history))
    return good and [*history.records, *lines(
        good, attempt=good.attempt + 1, start_ns=good.end_ns + 2 * MS, end_ns=good.end_ns + 3 * MS)]


def taken_from_a_long_handler(history: History, drawn: random.Random) -> Records | None:
    held = pick(drawn, [e for e in undisturbed(history) if e.end_ns - e.start_ns > LEASE + 50 * MS])
    at_ns = held and held.start_ns + LEASE + 10 * MS
    return held and [*history.records, *lines(held, attempt=held.attempt + 1, pid=OTHER_PID,
                                              start_ns=at_ns, end_ns=at_ns + MS)]


def answered_otherwise_the_second_time(history: History, drawn: random.Random) -> Records | None:
    again = pick(drawn, [asked_[-1] for asked_ in history.submissions.values()
                         if sum(o.outcome == "ok" for o in asked_) > 1])
    return again and changed(history, lambda r: replace(
        again, outcome="refused", answer={"code": "EXISTS"}) if r is again else r)


def settled_and_executed_again(history: History, drawn: random.Random) -> Records | None:
    lost = {f.detail["task_id"] for f in history.of(Fault) if f.detail.get("of") == "settlement"}
    ended = [history.executions[task_id][-1] for task_id in lost
             if history.executions[task_id][-1].outcome == "ok"]
    ended = [e for e in ended if (why := befell(history, e, history.end_ns)) is not None
             and why.cause == "reply_lost"]
    good = pick(drawn, ended)
    return good and [*history.records, *lines(
        good, attempt=good.attempt + 1, start_ns=good.end_ns + 9 * MS,
        end_ns=good.end_ns + 10 * MS)]


def counted_twice_for_a_lost_reply(history: History, drawn: random.Random) -> Records | None:
    lost = pick(drawn, [f for f in history.of(Fault) if "counted" in f.detail])
    return lost and changed(history, lambda r: replace(r, detail={**r.detail, "counted": 2})
                            if isinstance(r, Fault) and r.number == lost.number else r)


def submitted_twice_for_a_lost_reply(history: History, drawn: random.Random) -> Records | None:
    lost = {f.detail["task_id"] for f in history.of(Fault) if f.detail.get("of") == "submission"}
    first = pick(drawn, [history.executions[task_id][0] for task_id in sorted(lost)
                         if task_id in history.executions])
    return first and [*history.records, *lines(
        first, task_id=STRANGER, start_ns=first.start_ns + MS, end_ns=first.start_ns + 2 * MS)]


# one_holder_at_a_time ---------------------------------------------------------------------------

def two_holders(history: History, drawn: random.Random) -> Records | None:
    return _second_holder(history, drawn, more=1)


def one_attempt_in_two_workers(history: History, drawn: random.Random) -> Records | None:
    return _second_holder(history, drawn, more=0)


def _second_holder(history: History, drawn: random.Random, *, more: int) -> Records | None:
    held = pick(drawn, [e for e in undisturbed(history) if e.end_ns - e.start_ns > 4 * MS])
    return held and [*history.records, *lines(
        held, attempt=held.attempt + more, pid=OTHER_PID, start_ns=held.start_ns + MS,
        end_ns=held.start_ns + 2 * MS)]


def redelivered_though_hardly_stopped(history: History, drawn: random.Random) -> Records | None:
    """A stop that explained a redelivery turns out to have been a short one."""
    overlaps = [(e, later) for e in executions(history) for later in after(history, e)
                if later.start_ns < evidence.over_ns(history, e)
                and (why := what_befell(history, e, later)) and why.cause in ("stopped", "cut")]
    if not overlaps or len(history.spells) != 1:
        return None
    begun = history.spells[0].from_ns
    return changed(history, lambda r: replace(r, at_ns=begun + 100 * MS) if isinstance(r, Fault)
                   and r.phase == "end" and r.effect in ("stopped", "cut") else r)


def dangerous_task_in_company(history: History, drawn: random.Random) -> Records | None:
    def is_dangerous(e: Execution) -> bool:
        deaths = [gone for other in history.executions[e.task_id]
                  if (gone := evidence.lost_holder_ns(history, other)) is not None]
        return sum(gone <= e.start_ns for gone in deaths) >= 2

    alone = pick(drawn, [e for e in executions(history) if is_dangerous(e)])
    other = alone and pick(drawn, [i for i in history.accepted if i != alone.task_id])
    return other and [*history.records, *lines(alone, task_id=other, start_ns=alone.start_ns - MS,
                                               end_ns=alone.start_ns + 1000)]


# one_terminal_state -----------------------------------------------------------------------------

def result_changed(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, with_status(history, "succeeded"))
    return task_id and seen(list(history.records), task_id, last=1, result="another")


def ran_again_after_its_end(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, with_status(history, "succeeded", "dead_lettered"))
    return task_id and seen(list(history.records), task_id, last=1, status="running")


def result_of_nobody(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, with_status(history, "succeeded"))
    return task_id and seen(list(history.records), task_id, last=2, result={
        "attempt": 1, "worker_id": "worker-1", "pid": OTHER_PID})


def superseded_result_shown(history: History, drawn: random.Random) -> Records | None:
    old = pick(drawn, [e for e in executions(history) if e.outcome == "ok" and evidence.superseded(
        e, history.executions[e.task_id]) and status_of(history, e.task_id) == "succeeded"])
    return old and seen(list(history.records), old.task_id, last=2, result={
        "attempt": old.attempt, "worker_id": old.worker_id, "pid": old.pid})


# nothing_left_behind ----------------------------------------------------------------------------

def a_key_of_no_row(history: History, drawn: random.Random) -> Records | None:
    return keys(history, lambda groups: [*groups, replace(groups[0], row="", names=["left:over"])])


def an_entry_left(history: History, drawn: random.Random) -> Records | None:
    return keys(history, lambda groups: [replace(g, members=1, pending=drawn.randrange(2))
                                         if g.row == LEVEL else g for g in groups])


def a_schedule_member_left(history: History, drawn: random.Random) -> Records | None:
    return keys(history, lambda groups: [*groups, KeyGroup(
        row="retry:schedule", type="zset", expires=False, count=1, members=1,
        names=["retry:schedule"])])


def a_record_that_never_expires(history: History, drawn: random.Random) -> Records | None:
    if not with_status(history, "succeeded"):
        return None
    return keys(history, lambda groups: [replace(g, expires=False) if g.row == TASK else g
                                         for g in groups])


def a_worker_that_never_expires(history: History, drawn: random.Random) -> Records | None:
    return keys(history, lambda groups: [replace(g, expires=False) if g.row.startswith("worker:")
                                         else g for g in groups])


FAULTS: dict[str, tuple[tuple[str, Seed], ...]] = {
    "nothing_lost": (
        ("DLV-01", forgotten), ("DLV-01", never_started), ("DLV-03", not_redelivered),
        ("DLV-02", reported_without_an_end), ("TASK-01", shown_with_another_priority),
        ("DLV-30", held_by_one_that_hangs), ("WORK-16", failed_though_it_ended_well)),
    "nothing_invented": (
        ("DLV-09", submitted_by_nobody), ("DLV-09", refused_and_executed),
        ("TASK-03", accepted_outside_the_limits), ("TASK-03", refused_without_the_field)),
    "duplicates_justified": (
        ("DLV-05", executed_again_after_success), ("DLV-06", taken_from_a_long_handler),
        ("TASK-02", answered_otherwise_the_second_time), ("DLV-10", settled_and_executed_again),
        ("DLV-35", counted_twice_for_a_lost_reply),
        ("TASK-04", submitted_twice_for_a_lost_reply)),
    "one_holder_at_a_time": (
        ("DLV-07", two_holders), ("DLV-07", one_attempt_in_two_workers),
        ("DLV-07", redelivered_though_hardly_stopped), ("DLV-11", dangerous_task_in_company)),
    "one_terminal_state": (
        ("STATE-02", result_changed), ("STATE-01", ran_again_after_its_end),
        ("STATE-03", result_of_nobody), ("DLV-08", superseded_result_shown)),
    "nothing_left_behind": (
        ("KEY-01", a_key_of_no_row), ("KEY-02", an_entry_left), ("KEY-03", a_schedule_member_left),
        ("KEY-04", a_record_that_never_expires), ("KEY-05", a_worker_that_never_expires)),
}

"""Ways to make a good history bad where deliveries are interrupted, which a checker must find.

Comes in: a good history and a random source. Goes out: the records of a bad one, or None where the
history offers no place for that fault. `FAULTS` has them by checker, with the broken clause.
"""

from __future__ import annotations

import random

from dtq_conformance import evidence
from dtq_conformance.history import Effect, Execution, Fault, History, Life, Process, Spell, Stall
from dtq_conformance.operation import Operation
from msgspec.structs import replace

from tests.conformance.alterations import (
    Records,
    Seed,
    changed,
    executions,
    is_line_of,
    lines,
    pick,
    seen,
    undisturbed,
    with_status,
    without,
)
from tests.conformance.simulation import MS

# attempts_accounted_for -------------------------------------------------------------------------

def _quiet_until(history: History, until_ns: int) -> bool:
    """Whether no worker and nothing else was lost by then, apart from stops in good order."""
    return all(life.exit_code == 0 or life.exit_ns is None or life.exit_ns > until_ns
               for life in history.lives) and not any(
        isinstance(r, Stall) or (isinstance(r, Fault) and r.effect in ("stopped", "cut", "killed"))
        for r in history.records)


def _is_quiet(history: History) -> bool:
    """Whether no worker was lost or stopped, but at the end of the run."""
    return _quiet_until(history, history.end_ns) and not any(
        fault.effect in ("terminated", "replaced") for fault in history.of(Fault))


def _first(history: History, *, after_a_stop: bool) -> list[Execution]:
    """First and only executions of tasks, with or without a worker's stop while they waited."""
    found = []
    for task_id in with_status(history, "succeeded"):
        only, asked = history.executions[task_id], history.submissions[task_id][0]
        stopped = any(life.exit_ns is not None and life.asked == "terminate"
                      and asked.asked_ns < life.exit_ns < only[0].start_ns
                      for life in history.lives)
        if len(only) == 1 and stopped == after_a_stop and _quiet_until(
                history, only[0].start_ns):
            found.append(only[0])
    return found


def _spent(history: History, execution: Execution | None) -> Records | None:
    """It turns out to be the second attempt."""
    if execution is None:
        return None
    records = [replace(r, attempt=2) if is_line_of(r, execution) else r for r in history.records]
    return seen(records, execution.task_id, from_ns=execution.start_ns, attempt=2)


def spent_for_nothing(history: History, drawn: random.Random) -> Records | None:
    return _spent(history, pick(drawn, _first(history, after_a_stop=False)))


def spent_by_a_late_take(history: History, drawn: random.Random) -> Records | None:
    return _spent(history, pick(drawn, _first(history, after_a_stop=True)))


def lost_without_being_executed(history: History, drawn: random.Random) -> Records | None:
    only = pick(drawn, _first(history, after_a_stop=False) if _is_quiet(history) else [])
    return only and seen(without(list(history.records), [only]), only.task_id,
                         from_ns=only.start_ns, status="dead_lettered", attempt=1, result=None,
                         error_class="WorkerLost")


def lost_from_a_live_holder(history: History, drawn: random.Random) -> Records | None:
    good = pick(drawn, undisturbed(history) if _is_quiet(history) else [])
    return good and seen(list(history.records), good.task_id, from_ns=good.start_ns,
                         status="dead_lettered", result=None, error_class="WorkerLost")


def kept_and_never_seen(history: History, drawn: random.Random) -> Records | None:
    handed = {str(f.detail["task_id"]) for f in history.of(Fault) if f.detail.get("of") == "take"}
    task_id = pick(drawn, sorted(handed & set(history.accepted)))
    return task_id and seen(without(list(history.records), history.executions[task_id]), task_id,
                            status="running", result=None, error_class=None)


# capacity_respected -----------------------------------------------------------------------------

def _beside(history: History, drawn: random.Random, busy: Execution | None,
            at_ns: int) -> Records | None:
    """As many more as the worker may execute, beside what it executes at that instant."""
    life = busy and evidence.life(history, busy)
    others = [task_id for task_id in history.accepted if busy and task_id != busy.task_id]
    if not busy or not life or not life.concurrency or len(others) < life.concurrency:
        return None
    records = list(history.records)
    for task_id in drawn.sample(others, life.concurrency):
        records += lines(busy, task_id=task_id, start_ns=at_ns, end_ns=at_ns + 1000)
    return records


def _long(history: History) -> list[Execution]:
    return [e for e in executions(history) if e.end_ns and e.end_ns - e.start_ns > 3 * MS]


def more_than_it_may(history: History, drawn: random.Random) -> Records | None:
    busy = pick(drawn, [e for e in _long(history) if "block" not in str(
        evidence.request_of(history, e.task_id))])
    return _beside(history, drawn, busy, busy.start_ns + MS) if busy else None


def slots_were_fewer(history: History, drawn: random.Random) -> Records | None:
    """A worker that executed two tasks at once turns out to have had one slot."""
    at_once = [e for e in _long(history) for other in executions(history)
               if other.pid == e.pid and e.start_ns < other.start_ns < (e.end_ns or 0)]
    busy = pick(drawn, at_once)
    return busy and changed(history, lambda r: replace(r, concurrency=1)
                            if isinstance(r, Process) and r.pid == busy.pid
                            and r.event == "start" else r)


def slot_of_an_overdue_handler(history: History, drawn: random.Random) -> Records | None:
    hung = pick(drawn, [e for e in _long(history) if "block" in str(
        evidence.request_of(history, e.task_id))])
    return _beside(history, drawn, hung, hung.end_ns - MS) if hung else None


# gives_way_to_its_namesake ----------------------------------------------------------------------

def _replaced(history: History, drawn: random.Random) -> tuple[Fault, Life] | None:
    found = [(fault, life) for fault in history.of(Fault)
             if fault.effect == "replaced" and fault.phase == "bit"
             and (life := history.life_of(fault.pids[0], fault.at_ns)) and life.exit_code == 0]
    chosen: tuple[Fault, Life] | None = pick(drawn, found)
    return chosen


def took_on_after_it(history: History, drawn: random.Random) -> Records | None:
    place = _replaced(history, drawn)
    own = place and [e for e in executions(history) if e.pid == place[1].pid
                     and e.task_id not in place[0].detail["in_hand"]]
    if not place or not own:
        return None
    at_ns = place[0].at_ns + 900 * MS
    return [*history.records, *lines(own[0], start_ns=at_ns, end_ns=at_ns + MS)]


def _exit(history: History, drawn: random.Random, later_ns: int, code: int) -> Records | None:
    place = _replaced(history, drawn)
    return place and changed(history, lambda r: replace(
        r, exit_code=code, at_ns=r.at_ns + later_ns) if isinstance(r, Process)
        and r.event == "exit" and r.pid == place[1].pid else r)


def exited_late_after_it(history: History, drawn: random.Random) -> Records | None:
    return _exit(history, drawn, 9_000 * MS, 0)


def exited_badly_after_it(history: History, drawn: random.Random) -> Records | None:
    return _exit(history, drawn, 0, 1)


# kept_through_broker_trouble --------------------------------------------------------------------

def _held_through(history: History, drawn: random.Random,
                  effect: Effect) -> tuple[Execution, Spell] | None:
    found = [(e, spell) for spell in history.spells if spell.effect == effect
             for e in undisturbed(history)
             if e.start_ns < spell.from_ns and spell.from_ns + 3 * MS < (e.end_ns or 0)]
    chosen: tuple[Execution, Spell] | None = pick(drawn, found)
    return chosen


def _taken_beside(history: History, drawn: random.Random, effect: Effect) -> Records | None:
    place = _held_through(history, drawn, effect)
    if not place:
        return None
    at_ns = place[1].from_ns + MS
    return [*history.records, *lines(place[0], attempt=place[0].attempt + 1, pid=9999,
                                     start_ns=at_ns, end_ns=at_ns + MS)]


def taken_when_the_group_was_lost(history: History, drawn: random.Random) -> Records | None:
    return _taken_beside(history, drawn, "group_dropped")


def taken_when_the_broker_was_back(history: History, drawn: random.Random) -> Records | None:
    return _taken_beside(history, drawn, "broker_restarted")


def put_away_when_the_broker_was_back(history: History, drawn: random.Random) -> Records | None:
    place = _held_through(history, drawn, "broker_restarted")
    if not place:
        return None
    held, at_ns = place[0], place[1].from_ns + MS
    return [*history.records, Operation(
        name="look", task_id=held.task_id, asked_ns=at_ns, answered_ns=at_ns + 1000, outcome="ok",
        answer={"task_id": held.task_id, "status": "dead_lettered", "attempt": held.attempt,
                "error_class": "WorkerLost"})]


FAULTS: dict[str, tuple[tuple[str, Seed], ...]] = {
    "attempts_accounted_for": (
        ("DLV-25", spent_for_nothing), ("DLV-25", lost_without_being_executed),
        ("DLV-27", spent_by_a_late_take), ("DLV-29", kept_and_never_seen),
        ("DLV-31", lost_from_a_live_holder)),
    "capacity_respected": (
        ("WORK-02", more_than_it_may), ("WORK-02", slots_were_fewer),
        ("WORK-07", slot_of_an_overdue_handler)),
    "gives_way_to_its_namesake": (
        ("DLV-28", took_on_after_it), ("DLV-28", exited_late_after_it),
        ("DLV-28", exited_badly_after_it)),
    "kept_through_broker_trouble": (
        ("WORK-18", taken_when_the_group_was_lost), ("WORK-19", taken_when_the_broker_was_back),
        ("WORK-19", put_away_when_the_broker_was_back)),
}

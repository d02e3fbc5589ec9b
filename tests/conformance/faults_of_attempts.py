"""Ways to make a good history bad in its attempts, stops and order, which a checker must find.

Comes in: a good history and a random source. Goes out: the records of a bad one, or None where the
history offers no place for that fault. `FAULTS` has them by checker, with the broken clause.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from dtq_conformance import evidence, plan
from dtq_conformance.choices import Choice, choices
from dtq_conformance.history import Execution, Fault, History, Life, Process, Stall, Witness
from dtq_conformance.justification import befell
from dtq_conformance.operation import Operation
from msgspec.structs import replace

from tests.conformance.alterations import (
    Records,
    Seed,
    after,
    asked,
    changed,
    ending,
    executions,
    is_line_of,
    letters,
    lines,
    moved,
    pick,
    seen,
    status_of,
    undisturbed,
    with_status,
    without,
)
from tests.conformance.histories import TIMING
from tests.conformance.simulation import MS

# attempts_bounded -------------------------------------------------------------------------------

def started_too_often(history: History, drawn: random.Random) -> Records | None:
    last = pick(drawn, [e for e in undisturbed(history)
                        if e.attempt == len(history.executions[e.task_id])])
    if last is None:
        return None
    most = evidence.budget(history, last.task_id) or 0
    records = list(history.records)
    for number in range(last.attempt + 1, most + 2):
        at_ns = (last.end_ns or 0) + number * MS
        records += lines(last, attempt=number, start_ns=at_ns, end_ns=at_ns + 1000)
    return records


def number_given_twice(history: History, drawn: random.Random) -> Records | None:
    later = pick(drawn, [found[-1] for found in history.executions.values()
                         if len(found) > 1 and found[-1].attempt > found[-2].attempt])
    if later is None:
        return None
    before = history.executions[later.task_id][-2].attempt
    return changed(history, lambda r: replace(r, attempt=before) if isinstance(r, Witness)
                   and is_line_of(r, later) else r)


def not_tried_again(history: History, drawn: random.Random) -> Records | None:
    failed = pick(drawn, [
        e for e in executions(history) if e.outcome == "failed"
        and ending(history, e) == "retryable" and after(history, e)
        and e.attempt < (evidence.budget(history, e.task_id) or 0)
        and not evidence.superseded(e, history.executions[e.task_id])])
    if failed is None:
        return None
    records = without(list(history.records), after(history, failed))
    return seen(records, failed.task_id, from_ns=failed.start_ns, status="dead_lettered",
                attempt=failed.attempt, result=None, error_class="RetryableError")


def permanent_failure_tried_again(history: History, drawn: random.Random) -> Records | None:
    failed = pick(drawn, [
        e for e in executions(history) if e.end_ns and plan.says_permanent(
            evidence.request_of(history, e.task_id), e.attempt)
        and befell(history, e, e.end_ns + 5 * MS) is None and not after(history, e)])
    return failed and [*history.records, *lines(
        failed, attempt=failed.attempt + 1, start_ns=failed.end_ns + MS,
        end_ns=failed.end_ns + 2 * MS)]


def unexpected_failure_tried_again(history: History, drawn: random.Random) -> Records | None:
    failed = pick(drawn, [
        e for e in executions(history) if ending(history, e) == "permanent" and e.end_ns
        and not plan.says_permanent(evidence.request_of(history, e.task_id), e.attempt)
        and befell(history, e, e.end_ns + 5 * MS) is None and not after(history, e)])
    return failed and [*history.records, *lines(
        failed, attempt=failed.attempt + 1, start_ns=failed.end_ns + MS,
        end_ns=failed.end_ns + 2 * MS)]


# dead_letters_complete --------------------------------------------------------------------------

def _a_dead(history: History, drawn: random.Random) -> str | None:
    """A task whose dead letter is there at the end."""
    listed = [o for o in history.operations if o.name == "dead_letters"][-1].answer["letters"]
    task_id: str | None = pick(drawn, [each["task_id"] for each in listed
                                       if each["task_id"] in history.accepted])
    return task_id


def letter_missing(history: History, drawn: random.Random) -> Records | None:
    task_id = _a_dead(history, drawn)
    return task_id and letters(history, lambda found: [
        each for each in found if each["task_id"] != task_id])


def letter_twice(history: History, drawn: random.Random) -> Records | None:
    return letters(history, lambda found: [*found, found[0]]) if _a_dead(history, drawn) else None


def letter_of_a_success(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, with_status(history, "succeeded"))
    return task_id and letters(history, lambda found: [
        *found, {"task_id": task_id, "attempts_made": 1, "error_class": "PermanentError"}])


def letter_with_a_wrong_count(history: History, drawn: random.Random) -> Records | None:
    task_id = _a_dead(history, drawn)
    return task_id and letters(history, lambda found: [
        each | {"attempts_made": each["attempts_made"] + (each["task_id"] == task_id)}
        for each in found])


def letter_with_another_class(history: History, drawn: random.Random) -> Records | None:
    return letters(history, lambda found: [each | {"error_class": "KeyError"} for each in found]) \
        if _a_dead(history, drawn) else None


def lost_worker_told_as_a_failure(history: History, drawn: random.Random) -> Records | None:
    lost = pick(drawn, [e for e in executions(history)
                        if e.attempt == evidence.budget(history, e.task_id)
                        and status_of(history, e.task_id) == "dead_lettered"
                        and evidence.lost_holder_ns(history, e) is not None])
    return lost and seen(list(history.records), lost.task_id, from_ns=lost.start_ns, last=2,
                         error_class="RetryableError")


def orphan_executed(history: History, drawn: random.Random) -> Records | None:
    orphan, first = _orphan(history), pick(drawn, executions(history))
    return orphan and first and [*history.records, *lines(
        first, task_id=orphan, start_ns=first.start_ns, end_ns=first.start_ns + MS)]


def orphan_without_a_letter(history: History, drawn: random.Random) -> Records | None:
    orphan = _orphan(history)
    return orphan and letters(history, lambda found: [each for each in found
                                                      if each["task_id"] != orphan])


def _orphan(history: History) -> str | None:
    return next((str(f.detail["task_id"]) for f in history.of(Fault) if f.effect == "forged"),
                None)


# drained_on_stop --------------------------------------------------------------------------------

def _stops(history: History) -> list[tuple[Fault, Life]]:
    """Workers that a fault asked to stop and that did, with the record of the signal."""
    found = [(f, history.life_of(f.pids[0], f.at_ns)) for f in history.of(Fault)
             if (f.effect, f.phase) == ("terminated", "bit")]
    return [(f, life) for f, life in found if life and life.exit_code == 0]


def exit_code_not_0(history: History, drawn: random.Random) -> Records | None:
    life = pick(drawn, [life for life in history.lives if life.asked == "terminate"
                        and life.exit_code == 0])
    return life and changed(history, lambda r: replace(r, exit_code=1) if isinstance(r, Process)
                            and (r.event, r.pid) == ("exit", life.pid) else r)


def exit_too_late(history: History, drawn: random.Random) -> Records | None:
    stop = pick(drawn, _stops(history))
    late_ns = (TIMING.drain_ms + 4000) * MS
    return stop and changed(history, lambda r: replace(r, at_ns=stop[0].at_ns + late_ns)
                            if isinstance(r, Process) and (r.event, r.pid) == ("exit", stop[1].pid)
                            else r)


def something_new_started(history: History, drawn: random.Random) -> Records | None:
    stop = pick(drawn, [(f, life) for f, life in _stops(history)
                        if set(history.accepted) - set(f.detail["in_hand"])])
    if stop is None:
        return None
    fault, life = stop
    task_id = min(set(history.accepted) - set(fault.detail["in_hand"]))
    at_ns = fault.at_ns + 300 * MS
    return [*history.records, Witness(at_ns=at_ns, event="start", task_id=task_id, attempt=1,
                                      worker_id=life.name, pid=life.pid)]


def released_with_its_attempt_spent(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, [(f, task_id) for f, _ in _stops(history)
                           for task_id in f.detail["unstarted"] if task_id in history.executions])
    if task_id is None:
        return None
    fault, given_back = task_id
    return changed(history, lambda r: replace(r, attempt=r.attempt + 1) if isinstance(r, Witness)
                   and r.task_id == given_back and r.at_ns > fault.at_ns else r)


def finished_and_not_recorded(history: History, drawn: random.Random) -> Records | None:
    done = pick(drawn, [
        e for f, life in _stops(history) for e in executions(history)
        if e.pid == life.pid and e.outcome == "ok" and e.end_ns and e.start_ns < f.at_ns
        and f.at_ns < e.end_ns < f.at_ns + (TIMING.drain_ms - 500) * MS and not after(history, e)
        and status_of(history, e.task_id) == "succeeded"])
    return done and seen(list(history.records), done.task_id, from_ns=done.end_ns,
                         status="running", result=None)


# strict_priority --------------------------------------------------------------------------------

def _choices(history: History, *, again: bool) -> Iterator[Choice]:
    return (c for c in choices(history) if c.again is again and not c.is_within_a_level
            and c.taken.task_id != c.left.execution.task_id)


def swapped(history: History, drawn: random.Random) -> Records | None:
    """Of two new tasks that both waited, the other one was taken first."""
    choice = pick(drawn, [
        c for c in _choices(history, again=False)
        if history.submissions[c.taken.task_id][0].answered_ns < c.after_ns
        and len(history.executions[c.taken.task_id]) == 1
        and len(history.executions[c.left.execution.task_id]) == 1])
    if choice is None:
        return None
    ids = (choice.taken.task_id, choice.left.execution.task_id)
    other = dict(zip(ids, reversed(ids), strict=True))
    return changed(history, lambda r: replace(r, task_id=other[r.task_id])
                   if isinstance(r, Witness) and r.task_id in other else r)


def urgent_task_passed_over(history: History, drawn: random.Random) -> Records | None:
    return _passed_over(history, drawn, again=False)


def urgent_redelivery_passed_over(history: History, drawn: random.Random) -> Records | None:
    return _passed_over(history, drawn, again=True)


def _passed_over(history: History, drawn: random.Random, *, again: bool) -> Records | None:
    """The task that was left waiting turns out to have been the more urgent one."""
    choice = pick(drawn, _choices(history, again=again))
    if choice is None:
        return None
    records = asked(list(history.records), choice.taken.task_id, priority=0)
    return asked(records, choice.left.execution.task_id, priority=9)


def older_task_passed_over(history: History, drawn: random.Random) -> Records | None:
    """The task of the same level that was left waiting turns out to be the older one."""
    choice = pick(drawn, (c for c in choices(history) if c.is_within_a_level))
    if choice is None:
        return None
    return changed(history, lambda r: replace(r, asked_ns=history.header.began_ns,
                                              answered_ns=history.header.began_ns)
                   if isinstance(r, Operation)
                   and (r.name, r.task_id) == ("submit", choice.left.execution.task_id) else r)


# retry_delays_in_envelope -----------------------------------------------------------------------

def _retries(history: History, attempt: int) -> list[tuple[Execution, Execution]]:
    """Failed attempts of this number and those that followed, with nothing befallen between."""
    found = [(e, later[0]) for e in executions(history)
             if e.outcome == "failed" and e.attempt == attempt
             and (later := after(history, e)) and later[0].attempt == attempt + 1]
    return [(e, later) for e, later in found if befell(history, e, later.start_ns) is None]


def tried_again_at_once(history: History, drawn: random.Random) -> Records | None:
    pair = pick(drawn, _retries(history, 1))
    return pair and moved(history, pair[1], (pair[0].end_ns or 0) + MS - pair[1].start_ns)


def delay_does_not_grow(history: History, drawn: random.Random) -> Records | None:
    pair = pick(drawn, _retries(history, 2))
    return pair and moved(history, pair[1], (pair[0].end_ns or 0)
                          + TIMING.base_delay_ms * MS - pair[1].start_ns)


def delayed_task_too_early(history: History, drawn: random.Random) -> Records | None:
    task_id = pick(drawn, [i for i in history.executions if i in history.accepted
                           and evidence.request_of(history, i).get("delay_ms", 0) > 20])
    if task_id is None:
        return None
    first = history.executions[task_id][0]
    due_ns = (history.submissions[task_id][0].asked_ns
              + evidence.request_of(history, task_id)["delay_ms"] * MS)
    return moved(history, first, due_ns - 5 * MS - first.start_ns)


def delayed_task_too_late(history: History, drawn: random.Random) -> Records | None:
    """A worker's last start in a quiet run comes two seconds later; the worker was idle."""
    if any(isinstance(r, Fault | Stall) for r in history.records) or not all(
            life.exit_code == 0 for life in history.lives):
        return None
    late = pick(drawn, [e for e in executions(history) if _starts_when_due(history, e)])
    return late and moved(history, late, 2000 * MS)


def _starts_when_due(history: History, last: Execution) -> bool:
    """Whether a delayed task was the last of a worker that had nothing else to do by then."""
    asked_ = history.submissions.get(last.task_id, [])
    if not asked_ or not asked_[0].request["delay_ms"] or last.attempt > 1:
        return False
    own = [e for e in executions(history) if e.pid == last.pid and e is not last]
    heard_ns = asked_[0].answered_ns
    due_ns = heard_ns + asked_[0].request["delay_ms"] * MS
    return (any(e.start_ns < heard_ns for e in own)
            and all((e.end_ns or 0) + TIMING.heartbeat_ms * MS < due_ns - 2 * MS for e in own)
            and not evidence.may_be_paused(history, heard_ns, last.start_ns))


FAULTS: dict[str, tuple[tuple[str, Seed], ...]] = {
    "attempts_bounded": (
        ("RETRY-01", started_too_often), ("RETRY-02", number_given_twice),
        ("RETRY-03", not_tried_again), ("RETRY-04", permanent_failure_tried_again),
        ("RETRY-08", unexpected_failure_tried_again)),
    "dead_letters_complete": (
        ("DLQ-01", letter_missing), ("DLQ-03", letter_twice), ("DLQ-03", letter_of_a_success),
        ("DLQ-02", letter_with_a_wrong_count), ("DLQ-02", letter_with_another_class),
        ("DLQ-04", lost_worker_told_as_a_failure), ("DLV-33", orphan_executed),
        ("DLV-33", orphan_without_a_letter)),
    "drained_on_stop": (
        ("STOP-01", exit_code_not_0), ("STOP-01", exit_too_late),
        ("STOP-01", something_new_started), ("STOP-03", released_with_its_attempt_spent),
        ("STOP-02", finished_and_not_recorded)),
    "strict_priority": (
        ("PRIO-01", swapped), ("PRIO-01", urgent_task_passed_over),
        ("PRIO-02", urgent_redelivery_passed_over), ("PRIO-03", older_task_passed_over)),
    "retry_delays_in_envelope": (
        ("RETRY-05", tried_again_at_once), ("RETRY-05", delay_does_not_grow),
        ("SCHED-01", delayed_task_too_early), ("SCHED-02", delayed_task_too_late)),
}

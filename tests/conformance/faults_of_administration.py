"""Ways to make a good history bad in what callers and administrators asked for, which a checker
must find.

Comes in: a good history, the lives of its tasks told apart, and a random source. Goes out: the
records of a bad one, or None where the history offers no place for that fault. `FAULTS` has them by
checker, with the broken clause.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from dtq_conformance import evidence, lives
from dtq_conformance.checkers.cancelled_stays_cancelled import must_be_interrupted
from dtq_conformance.history import Execution, History, Witness
from dtq_conformance.justification import befell, may_be_lost_unseen
from dtq_conformance.operation import Operation
from dtq_conformance.target import TERMINAL
from msgspec.structs import replace

from tests.conformance.alterations import (
    STRANGER,
    Records,
    Seed,
    asked,
    changed,
    executions,
    is_line_of,
    lines,
    moved,
    pick,
    seen,
    status_of,
    with_status,
    without,
)
from tests.conformance.simulation import LEASE, MS


def _asked(history: History, name: str, outcome: str = "ok", **answer: Any) -> list[Operation]:
    return [o for o in history.operations if o.name == name and o.outcome == outcome
            and answer.items() <= o.answer.items()]


def _looked_after(history: History, operation: Operation) -> bool:
    return any(look.asked_ns > operation.answered_ns
               for look in history.looks.get(operation.task_id or "", []))


def _with(history: History, old: Operation, **fields: Any) -> Records:
    return changed(history, lambda r: replace(old, **fields) if r is old else r)


def _execution(task_id: str, attempt: int, at_ns: int, history: History) -> Records:
    """Another execution of a task, by a worker of the run."""
    life = next(each for each in history.lives if each.role == "worker")
    like = Execution(task_id, attempt, life.name, life.pid, "", at_ns, at_ns + 1000, "ok")
    return lines(like, start_ns=at_ns, end_ns=at_ns + 1000)


# cancelled_stays_cancelled ----------------------------------------------------------------------

def executed_after_its_cancel(history: History, drawn: random.Random) -> Records | None:
    cancel = pick(drawn, _asked(history, "cancel", said="cancelled"))
    return cancel and [*history.records, *_execution(
        cancel.task_id, 1, cancel.answered_ns + 5 * MS, history)]


def not_cancelled_after_all(history: History, drawn: random.Random) -> Records | None:
    cancel = pick(drawn, [o for o in _asked(history, "cancel", said="cancelled")
                          if _looked_after(history, o)])
    return cancel and seen(list(history.records), cancel.task_id, last=1, status="retrying")


def attempted_after_a_request(history: History, drawn: random.Random) -> Records | None:
    places = [(o, e) for o in _asked(history, "cancel", said="requested")
              for e in history.executions.get(o.task_id or "", [])[-1:] if e.start_ns < o.asked_ns]
    place = pick(drawn, places)
    return place and [*history.records, *_execution(
        place[1].task_id, place[1].attempt + 2, place[0].answered_ns + 300 * MS, history)]


def dead_after_a_request(history: History, drawn: random.Random) -> Records | None:
    cancel = pick(drawn, [o for o in _asked(history, "cancel", said="requested")
                          if status_of(history, o.task_id or "") == "cancelled"])
    return cancel and seen(list(history.records), cancel.task_id, from_ns=cancel.answered_ns,
                           status="dead_lettered", error_class="WorkerLost")


def not_interrupted_after_a_request(history: History, drawn: random.Random) -> Records | None:
    """A handler that ended by the request runs out instead."""
    places = [(o, e) for o in _asked(history, "cancel", said="requested")
              for e in history.executions.get(o.task_id or "", [])
              if e.outcome == "cancelled" and e.start_ns < o.asked_ns
              and must_be_interrupted(history, e, o.answered_ns + 700 * MS)]
    place = pick(drawn, places)
    return place and changed(history, lambda r: replace(r, outcome="ok")
                             if isinstance(r, Witness) and r.outcome
                             and is_line_of(r, place[1]) else r)


def succeeded_without_an_end_after_a_request(history: History,
                                             drawn: random.Random) -> Records | None:
    cancel = pick(drawn, [o for o in _asked(history, "cancel", said="requested")
                          if status_of(history, o.task_id or "") == "succeeded"])
    if cancel is None:
        return None
    gone = [e for e in history.executions[cancel.task_id] if e.outcome == "ok"]
    return without(list(history.records), gone)


def refused_and_seen_unfinished(history: History, drawn: random.Random) -> Records | None:
    cancel = pick(drawn, [o for o in _asked(history, "cancel", "refused")
                          if _looked_after(history, o)])
    return cancel and seen(list(history.records), cancel.task_id, last=1, status="running",
                           attempt=1)


def cancelled_a_second_time(history: History, drawn: random.Random) -> Records | None:
    first = {o.task_id for o in _asked(history, "cancel", said="cancelled")}
    second = pick(drawn, [o for o in _asked(history, "cancel", "refused") if o.task_id in first])
    return second and _with(history, second, outcome="ok", answer={"said": "cancelled"})


def executed_after_a_purge(history: History, drawn: random.Random) -> Records | None:
    purge, task_id = pick(drawn, _purged(history)) or (None, None)
    return purge and [*history.records, *_execution(
        task_id, 1, purge.answered_ns + LEASE + 5 * MS, history)]


def _purged(history: History) -> Iterator[tuple[Operation, str]]:
    for purge in _asked(history, "purge"):
        for task_id in history.accepted:
            looks = [look for look in history.looks.get(task_id, [])
                     if look.answered_ns < purge.asked_ns]
            if looks and looks[-1].answer.get("status") == "queued" and status_of(
                    history, task_id) == "cancelled":
                yield purge, task_id


def purged_while_it_ran(history: History, drawn: random.Random) -> Records | None:
    called_off = {o.task_id for o in _asked(history, "cancel")}
    ran = [e for purge in _asked(history, "purge") for e in executions(history)
           if e.start_ns < purge.asked_ns and evidence.over_ns(history, e) > purge.answered_ns
           and e.task_id not in called_off]
    held = pick(drawn, ran)
    return held and seen(list(history.records), held.task_id, status="cancelled", result=None)


# paused_means_paused ----------------------------------------------------------------------------

def _pauses(history: History) -> list[tuple[int, int]]:
    resumes = _asked(history, "resume")
    return [(pause.answered_ns, min(r.asked_ns for r in resumes if r.asked_ns > pause.asked_ns))
            for pause in _asked(history, "pause")]


def _submitted_in_a_pause(history: History) -> list[tuple[str, int, int]]:
    return [(task_id, asked[0].answered_ns, to_ns) for from_ns, to_ns in _pauses(history)
            for task_id, asked in history.submissions.items()
            if task_id in history.accepted and from_ns < asked[0].asked_ns
            and asked[0].answered_ns < to_ns - 10 * MS]


def taken_in_a_pause(history: History, drawn: random.Random) -> Records | None:
    """What was submitted in a pause was started in it."""
    place = pick(drawn, _submitted_in_a_pause(history))
    return place and [*history.records, *_execution(place[0], 1, place[1] + 5 * MS, history)]


def started_too_soon_in_a_pause(history: History, drawn: random.Random) -> Records | None:
    """A start after the resume turns out to have been one before it."""
    found = [(e, to_ns) for task_id, _, to_ns in _submitted_in_a_pause(history)
             for e in history.executions.get(task_id, [])[:1] if e.start_ns > to_ns]
    place = pick(drawn, found)
    return place and moved(history, place[0], place[1] - MS - place[0].start_ns)


def redelivered_in_a_pause(history: History, drawn: random.Random) -> Records | None:
    found = [(e, evidence.over_ns(history, e)) for from_ns, to_ns in _pauses(history)
             for e in executions(history) if e.start_ns < from_ns
             and e is history.executions[e.task_id][-1]
             and from_ns < evidence.over_ns(history, e) < to_ns - 5 * MS
             and not any(look.answered_ns < to_ns and evidence.terminal(look)
                         for look in history.looks.get(e.task_id, []))]
    place = pick(drawn, found)
    return place and [*history.records, *_execution(
        place[0].task_id, place[0].attempt + 1, place[1] + 2 * MS, history)]


def not_settled_in_a_pause(history: History, drawn: random.Random) -> Records | None:
    found = []
    for from_ns, to_ns in _pauses(history):
        for e in executions(history):
            end_ns = e.end_ns or 0
            looks = [look for look in history.looks.get(e.task_id, [])
                     if end_ns < look.asked_ns and look.answered_ns < to_ns]
            if (e.outcome == "ok" and e.start_ns < from_ns < end_ns < to_ns and looks
                    and looks[-1].asked_ns > end_ns + LEASE
                    and befell(history, e, looks[-1].asked_ns) is None):
                found.append((e, looks[-1]))
    place = pick(drawn, found)
    return place and _with(history, place[1], answer=place[1].answer | {
        "status": "running", "result": None})


# no_start_after_ttl -----------------------------------------------------------------------------

def _mortal(history: History, *, requeued: bool = False) -> list[tuple[str, Operation, int]]:
    """Accepted tasks with a time to live: their acceptance, and when the time is over."""
    found = []
    for task_id in history.accepted:
        asked = next(o for o in history.submissions[task_id] if o.outcome == "ok")
        ttl_ms = asked.request.get("ttl_ms") or 0
        again = any(o.asked_ns == asked.asked_ns for o in _asked(history, "requeue"))
        if ttl_ms and again == requeued:
            found.append((task_id, asked, asked.answered_ns + ttl_ms * MS))
    return found


def started_when_it_was_over(history: History, drawn: random.Random) -> Records | None:
    place = pick(drawn, _mortal(history))
    return place and [*history.records, *_execution(
        place[0], 1, place[2] + LEASE + 2 * MS, history)]


def still_queued_when_it_was_over(history: History, drawn: random.Random) -> Records | None:
    place = pick(drawn, [each for each in _mortal(history)
                         if status_of(history, each[0]) == "expired"])
    return place and seen(list(history.records), place[0], from_ns=place[2], status="queued")


def expired_early(history: History, drawn: random.Random) -> Records | None:
    return _expired_early(history, drawn, requeued=False)


def expired_by_the_time_of_its_first_life(history: History, drawn: random.Random) -> Records | None:
    return _expired_early(history, drawn, requeued=True)


def _expired_early(history: History, drawn: random.Random, *, requeued: bool) -> Records | None:
    found = [look for task_id, asked, over_ns in _mortal(history, requeued=requeued)
             for look in history.looks.get(task_id, []) if look.answer
             and asked.answered_ns < look.asked_ns and look.answered_ns < over_ns - 2 * MS]
    look = pick(drawn, found)
    return look and _with(history, look, answer=look.answer | {"status": "expired"})


def expired_though_it_ran(history: History, drawn: random.Random) -> Records | None:
    called_off = {o.task_id for o in history.operations if o.name == "cancel"}
    found = []
    for task_id, _, over_ns in _mortal(history):
        for e in history.executions.get(task_id, [])[-1:]:
            looks = [look for look in history.looks[task_id] if look.asked_ns > (e.end_ns or 0)]
            if (e.outcome == "ok" and e.start_ns < over_ns - MS
                    and (e.end_ns or 0) > over_ns and task_id not in called_off
                    and befell(history, e, looks[0].asked_ns) is None):
                found.append(e)
    held = pick(drawn, found)
    return held and seen(list(history.records), held.task_id, from_ns=held.end_ns,
                         status="expired", result=None)


# one_task_per_key -------------------------------------------------------------------------------

def _in_progress(history: History) -> list[Operation]:
    return _asked(history, "submit", "refused", code="IDEMPOTENCY_IN_PROGRESS")


def accepted_beside_the_key(history: History, drawn: random.Random) -> Records | None:
    refused = pick(drawn, _in_progress(history))
    return refused and _with(history, refused, outcome="ok", answer={})


def refused_without_a_name(history: History, drawn: random.Random) -> Records | None:
    refused = pick(drawn, _in_progress(history))
    return refused and _with(history, refused, answer={"code": "IDEMPOTENCY_IN_PROGRESS"})


def refused_because_of_what_is_over(history: History, drawn: random.Random) -> Records | None:
    """A duplicate of a task that was seen to be over is refused as in progress."""
    found = [o for o in _asked(history, "submit", duplicate=True)
             if any(evidence.terminal(look) and look.answered_ns < o.asked_ns
                    for look in history.looks.get(str(o.answer["task_id"]), []))
             and not lives.was_requeued(history, str(o.answer["task_id"]))]
    duplicate = pick(drawn, found)
    return duplicate and _with(history, duplicate, outcome="refused", answer={
        "code": "IDEMPOTENCY_IN_PROGRESS", "task_id": duplicate.answer["task_id"]})


def answered_with_a_stranger(history: History, drawn: random.Random) -> Records | None:
    duplicate = pick(drawn, _asked(history, "submit", duplicate=True))
    return duplicate and _with(history, duplicate, answer=duplicate.answer | {"task_id": STRANGER})


def answered_as_over_before_it_was(history: History, drawn: random.Random) -> Records | None:
    """A refusal turns out to have been an answer with the task, which was unfinished later."""
    found = [o for o in _in_progress(history)
             if any(not evidence.terminal(look) and look.asked_ns > o.answered_ns
                    for look in history.looks.get(str(o.answer["task_id"]), []))
             and not lives.was_requeued(history, str(o.answer["task_id"]))]
    refused = pick(drawn, found)
    return refused and _with(history, refused, outcome="ok", answer={
        "task_id": refused.answer["task_id"], "duplicate": True})


def refused_because_of_itself(history: History, drawn: random.Random) -> Records | None:
    again = pick(drawn, [asked[-1] for asked in history.submissions.values()
                         if asked[0].request.get("idempotency_key")
                         and [o.outcome for o in asked].count("ok") > 1
                         and asked[0].answered_ns < asked[-1].asked_ns])
    return again and _with(history, again, outcome="refused", answer={
        "code": "IDEMPOTENCY_IN_PROGRESS", "task_id": again.task_id})


def requeued_beside_the_key(history: History, drawn: random.Random) -> Records | None:
    """The key of a requeued task turns out to be another's by then, which is unfinished."""
    requeue = pick(drawn, [o for o in _asked(history, "requeue")
                           if str(o.task_id).endswith("~1") and evidence.request_of(
                               history, str(o.task_id)).get("idempotency_key")])
    if requeue is None:
        return None
    request = evidence.request_of(history, requeue.task_id) | {"task_id": STRANGER}
    at_ns = requeue.asked_ns - MS
    return [*asked(list(history.records), requeue.task_id or "", idempotency_key=None), replace(
        requeue, name="submit", task_id=STRANGER, request=request, answer={}, asked_ns=at_ns,
        answered_ns=at_ns + 1000)]


# requeue_begins_anew ----------------------------------------------------------------------------

def begun_with_the_next_attempt(history: History, drawn: random.Random) -> Records | None:
    found = [e for o in _asked(history, "requeue") for task_id, asked in history.submissions.items()
             if asked[0].asked_ns == o.asked_ns
             for e in history.executions.get(task_id, [])[:1]
             if not may_be_lost_unseen(history, o.asked_ns, e.start_ns)]
    first = pick(drawn, found)
    return first and [replace(r, attempt=r.attempt + 1) if is_line_of(r, first) else r
                      for r in history.records]


def requeued_what_was_discarded(history: History, drawn: random.Random) -> Records | None:
    discarded = {o.task_id for o in _asked(history, "discard")}
    refused = pick(drawn, [o for o in _asked(history, "requeue", "refused")
                           if o.task_id in discarded])
    return refused and _with(history, refused, outcome="ok", answer={})


def requeued_what_had_no_letter(history: History, drawn: random.Random) -> Records | None:
    return _done_without_a_letter(history, drawn, "requeue")


def discarded_what_had_no_letter(history: History, drawn: random.Random) -> Records | None:
    return _done_without_a_letter(history, drawn, "discard")


def _done_without_a_letter(history: History, drawn: random.Random, name: str) -> Records | None:
    others = with_status(history, *(TERMINAL - {"dead_lettered"}))
    refused = pick(drawn, [o for o in _asked(history, name, "refused") if o.task_id in others
                           and any(evidence.terminal(look) and look.answered_ns < o.asked_ns
                                   for look in history.looks[o.task_id])])
    return refused and _with(history, refused, outcome="ok", answer={})


FAULTS: dict[str, tuple[tuple[str, Seed], ...]] = {
    "cancelled_stays_cancelled": (
        ("CANCEL-03", not_interrupted_after_a_request), ("DLV-36", cancelled_a_second_time),
        ("CANCEL-01", executed_after_its_cancel), ("CANCEL-01", not_cancelled_after_all),
        ("CANCEL-05", attempted_after_a_request), ("CANCEL-05", dead_after_a_request),
        ("CANCEL-06", succeeded_without_an_end_after_a_request),
        ("CANCEL-08", refused_and_seen_unfinished), ("CANCEL-09", executed_after_a_purge),
        ("CANCEL-09", purged_while_it_ran)),
    "paused_means_paused": (
        ("PAUSE-01", taken_in_a_pause), ("PAUSE-01", started_too_soon_in_a_pause),
        ("PAUSE-01", redelivered_in_a_pause), ("PAUSE-02", not_settled_in_a_pause)),
    "no_start_after_ttl": (
        ("TTL-01", started_when_it_was_over), ("TTL-01", still_queued_when_it_was_over),
        ("TTL-01", expired_early), ("TTL-02", expired_by_the_time_of_its_first_life),
        ("TTL-03", expired_though_it_ran)),
    "one_task_per_key": (
        ("IDEM-05", accepted_beside_the_key), ("IDEM-03", refused_without_a_name),
        ("IDEM-04", refused_because_of_what_is_over), ("IDEM-04", answered_with_a_stranger),
        ("IDEM-03", answered_as_over_before_it_was), ("IDEM-10", refused_because_of_itself),
        ("IDEM-15", requeued_beside_the_key)),
    "requeue_begins_anew": (
        ("DLQ-06", begun_with_the_next_attempt), ("DLQ-08", requeued_what_was_discarded),
        ("DLQ-08", requeued_what_had_no_letter), ("DLQ-08", discarded_what_had_no_letter)),
}

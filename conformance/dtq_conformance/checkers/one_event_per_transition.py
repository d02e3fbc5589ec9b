"""One event per transition: whoever listens throughout hears of each, once, and in its order.

The events of a task must be a way through the transitions that its states allow, as long as its
executions demand and with the end that was looked at. Where the same events in another order were
one, the order is wrong; otherwise one is missing or there is one too many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from dtq_conformance import evidence, expectations, front_tables
from dtq_conformance.evidence import MS, at
from dtq_conformance.exchange import Heard, Subscription
from dtq_conformance.history import History, Life
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "EVT-01": "All {n} events had the fields and a type of the contract.",
    "EVT-02": "Each of the {n} tasks had one event for each of its transitions.",
    "EVT-03": "The events of each of the {n} tasks came in their order.",
    "EVT-04": "All {n} events had ids of their own.",
    "EVT-05": "All {n} entries of finished tasks were announced as absorbed, once.",
    "EVT-06": "All {n} starts, goodbyes and silences of workers were announced once.",
    "EVT-08": "All {n} clients of the WebSocket heard what was published, in its order.",
    "DLV-23": "All {n} outcomes of superseded holders were announced once.",
    "BACK-05": "All {n} slow clients were kept what is promised, and no more.",
    "BACK-06": "All {n} slow clients were told of each end.",
    "BACK-07": "All {n} clients that were too slow for that were let go.",
}

ENDS = {"TASK_SUCCEEDED": "succeeded", "TASK_FAILED": "failed", "TASK_CANCELLED": "cancelled",
        "TASK_EXPIRED": "expired", "TASK_DEAD_LETTERED": "dead_lettered"}

_CALLED_OFF = {"TASK_CANCELLED": "cancelled", "TASK_EXPIRED": "expired"}
_GIVEN_UP = {"TASK_FAILED": "failed", "TASK_DEAD_LETTERED": "dead_lettered"}

NEXT: dict[str, dict[str, str]] = {
    "new": {"TASK_QUEUED": "queued", **_CALLED_OFF},
    "queued": {"TASK_STARTED": "running", **_CALLED_OFF, **_GIVEN_UP},
    "running": {"TASK_STARTED": "running", "TASK_QUEUED": "queued",
                "TASK_RETRY_SCHEDULED": "retrying", **ENDS},
    "retrying": {"TASK_RETRIED": "queued", **_CALLED_OFF},
    "dead_lettered": {"TASK_QUEUED": "queued"},
}
"""Where an event leads from a state; from a state that is not here, nowhere."""

FIELDS: dict[str, type | tuple[type, ...]] = {
    "event_id": str, "ts": int, "type": str, "task_id": str, "queue": str, "task_type": str,
    "attempt": int, "worker_id": str, "metadata": dict}
ALWAYS = ("event_id", "ts", "type")
LATE_MS = 1_000
"""What is published so shortly before a subscriber's end it need not have heard."""

COPIED = "entry added of"
"""How an inspection begins that tells of an entry which the harness added of a finished task."""

LEADS = "leads the scheduling"
"""How an inspection begins that names the worker whose death nobody may notice for a while."""

LEADER_MS = 10_000
"""For so long after its leader's death nobody may lead, and look who is silent."""

SEARCHED = 9
"""Of so many events at most, another order is looked for."""


def check(history: History) -> list[Verdict]:
    """Judge what each subscriber heard."""
    ledger = Ledger("one_event_per_transition", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    heard: dict[str, list[Heard]] = defaultdict(list)
    for each in history.of(Heard):
        heard[each.subscriber].append(each)
    subscriptions: list[Subscription] = history.of(Subscription)
    for subscription in subscriptions:
        events = heard[subscription.subscriber]
        _are_well_formed(history, ledger, events)
        if not subscription.slow:
            _are_one_for_each(history, ledger, subscription, events)
            _announce_workers(history, ledger, subscription, events)
            _announce_what_came_too_late(history, ledger, subscription, events)
    channel = next((each for each in subscriptions if each.via == "channel"), None)
    for subscription in subscriptions:
        if channel is not None and subscription.via == "websocket" and not subscription.slow:
            _are_passed_on(ledger, subscription, heard["channel"],
                           heard[subscription.subscriber])
    return ledger.verdicts()


def _are_well_formed(history: History, ledger: Ledger, events: list[Heard]) -> None:
    ids: set[str] = set()
    for heard in events:
        event = heard.event if isinstance(heard.event, dict) else {}
        ledger.judged("EVT-01")
        wrong = [name for name in ALWAYS if name not in event]
        wrong += [name for name, value in event.items()
                  if name not in FIELDS or not isinstance(value, FIELDS[name])]
        if wrong or event["type"] not in front_tables.events():
            ledger.violated("EVT-01", None, f"An event was published {at(history, heard.at_ns)} "
                            f"whose {', '.join(wrong) or 'type'} is not as the contract says: "
                            f"{str(heard.event)[:200]}.", event=heard.event)
            continue
        ledger.judged("EVT-04")
        if event["event_id"] in ids:
            ledger.violated("EVT-04", event.get("task_id") or None, f"The id {event['event_id']} "
                            f"was that of an event before, {at(history, heard.at_ns)}.",
                            event=event)
        ids.add(event["event_id"])


def _field(heard: Heard, name: str) -> Any:
    return heard.event.get(name) if isinstance(heard.event, dict) else None


def _are_one_for_each(history: History, ledger: Ledger, subscription: Subscription,
                      events: list[Heard]) -> None:
    of_task: dict[str, list[Heard]] = defaultdict(list)
    for heard in events:
        of_task[str(_field(heard, "task_id") or "")].append(heard)
    for task_id in {each.partition("~")[0]: None for each in history.accepted}:
        first = min(o.asked_ns for name, asked in history.submissions.items()
                    if name.partition("~")[0] == task_id for o in asked)
        looks = [look for look in history.looks.get(task_id, [])
                 if look.answered_ns < subscription.to_ns]
        if first < subscription.from_ns or not looks or not evidence.terminal(looks[-1]):
            continue
        told = [heard for heard in of_task[task_id]
                if _field(heard, "type") not in ("TASK_SUPERSEDED", "TASK_DUPLICATE_ABSORBED")]
        ledger.judged("EVT-02")
        ledger.judged("EVT-03")
        wrong = _misfit(told) or _not_all(history, task_id, told, str(looks[-1].answer["status"]))
        if wrong:
            clause = "EVT-03" if _misfit(told) and _fits_reordered(told) else "EVT-02"
            ledger.violated(clause, task_id, f"Task {task_id}, of which {subscription.subscriber} "
                            f"heard {_named(told)}: {wrong}.",
                            events=[heard.event for heard in told])


def _named(told: Sequence[Heard]) -> str:
    return ", ".join(f"{_field(each, 'type')} {_field(each, 'attempt')}" for each in told) \
        or "nothing"


def _misfit(told: Sequence[Heard]) -> str:
    """What is wrong with this sequence of events, as half a sentence; empty if it is a way."""
    state, attempt = "new", 0
    for heard in told:
        name = str(_field(heard, "type"))
        if name not in NEXT.get(state, {}):
            return f"{name} does not follow while it is {state}"
        if name == "TASK_STARTED":
            if state == "running" and (_field(heard, "attempt") or 0) <= attempt:
                return f"attempt {_field(heard, 'attempt')} was started twice"
            attempt = _field(heard, "attempt") or 0
        state = NEXT[state][name]
    return ""


def _not_all(history: History, task_id: str, told: list[Heard], status: str) -> str:
    """What these events, which are a way, leave out."""
    if not told or ENDS.get(str(_field(told[-1], "type"))) != status:
        return f"no event says that it became {status}"
    started = Counter(_field(heard, "attempt") for heard in told
                      if _field(heard, "type") == "TASK_STARTED")
    lives = [name for name in history.executions if name.partition("~")[0] == task_id]
    ran = Counter(attempt for name in lives
                  for attempt in {execution.attempt for execution in history.executions[name]})
    if missing := ran - started:
        return f"no event says that attempt {min(missing)} was taken"
    return ""


def _fits_reordered(told: Sequence[Heard]) -> bool:
    """Whether the same events in another order are a way."""
    if len(told) > SEARCHED:
        return False

    def goes_on(way: list[Heard], rest: list[Heard]) -> bool:
        if _misfit(way):
            return False
        return not rest or any(goes_on([*way, each], [*rest[:place], *rest[place + 1:]])
                               for place, each in enumerate(rest))

    return goes_on([], list(told))


def _announce_workers(history: History, ledger: Ledger, subscription: Subscription,
                      events: list[Heard]) -> None:
    said = Counter((_field(heard, "type"), _field(heard, "worker_id")) for heard in events)
    names = Counter(life.name for life in history.lives)
    for life in history.lives:
        if life.role != "worker" or names[life.name] > 1 or life.start_ns < subscription.from_ns:
            continue
        for name in _to_announce(history, life, subscription, said):
            most = 1 + sum(spell.effect == "stopped" and life.pid in spell.pids
                           for spell in history.spells) if name == "WORKER_STALE" else 1
            ledger.judged("EVT-06")
            if not 1 <= said[name, life.name] <= most:
                ledger.violated("EVT-06", None, f"{life.name} was announced by {name} "
                                f"{said[name, life.name]} times, not once.", worker=life.name)


def _to_announce(history: History, life: Life, subscription: Subscription,
                 said: Counter[tuple[Any, Any]]) -> list[str]:
    """What must have been said of a worker while the subscriber listened."""
    executed = any(execution.worker_id == life.name for executions in history.executions.values()
                   for execution in executions)
    if not (executed or said["WORKER_STARTED", life.name]):
        return []
    found = ["WORKER_STARTED"]
    late_ns = subscription.to_ns - LATE_MS * MS
    if life.exit_ns is not None and life.exit_ns < late_ns:
        if life.exit_code == 0 and life.asked == "terminate":
            found.append("WORKER_STOPPED")
        silent_ns = life.exit_ns + history.header.timing.recovery_ms * MS
        if not any(page.words[0] == LEADS and page.words[1] != life.name
                   for page in expectations.exchanges(history, "inspection")):
            silent_ns += LEADER_MS * MS
        if life.signal == 9 and silent_ns < late_ns and any(
                other.role == "worker" and other.start_ns < life.exit_ns
                and (other.exit_ns or silent_ns) >= silent_ns for other in history.lives
                if other is not life):
            found.append("WORKER_STALE")
    return found


def _announce_what_came_too_late(history: History, ledger: Ledger, subscription: Subscription,
                                 events: list[Heard]) -> None:
    said = Counter((_field(heard, "type"), _field(heard, "task_id")) for heard in events)
    late_ns = subscription.to_ns - LATE_MS * MS
    for seen in expectations.exchanges(history, "inspection"):
        if seen.words[0] == COPIED and subscription.from_ns < seen.asked_ns < late_ns:
            task_id = seen.words[1]
            ledger.judged("EVT-05")
            if said["TASK_DUPLICATE_ABSORBED", task_id] != 1:
                ledger.violated("EVT-05", task_id, f"An entry of the finished task {task_id} was "
                                f"added {at(history, seen.asked_ns)}, and was announced as "
                                f"absorbed {said['TASK_DUPLICATE_ABSORBED', task_id]} times.")
    for task_id, executions in history.executions.items():
        for place, first in enumerate(executions):
            if (first.end_ns is None or not subscription.from_ns < first.end_ns < late_ns
                    or not any(second.start_ns < first.end_ns
                               for second in executions[place + 1:])):
                continue
            ledger.judged("DLV-23")
            if said["TASK_SUPERSEDED", task_id] != 1:
                ledger.violated("DLV-23", task_id, f"Attempt {first.attempt} of task {task_id} "
                                f"ended {at(history, first.end_ns)}, when another had begun; that "
                                "its outcome was dropped was announced "
                                f"{said['TASK_SUPERSEDED', task_id]} times.")


def _are_passed_on(ledger: Ledger, subscription: Subscription,
                   published: list[Heard], heard: list[Heard]) -> None:
    """What a client heard is a stretch of what was published, up to the ends of its connection."""
    ledger.judged("EVT-08")
    early_ns, late_ns = subscription.from_ns + LATE_MS * MS, subscription.to_ns - LATE_MS * MS
    ids = [_field(each, "event_id") for each in heard]
    known = [_field(each, "event_id") for each in published]
    must = [_field(each, "event_id") for each in published if early_ns < each.at_ns < late_ns]
    first = known.index(ids[0]) if ids and ids[0] in known else 0
    if ids != known[first:first + len(ids)] or not set(must) <= set(ids):
        missing = [each for each in must if each not in ids]
        ledger.violated("EVT-08", None, f"{subscription.subscriber} heard {len(ids)} events, and "
                        f"{len(must)} were published while it was surely connected; "
                        f"{len(missing)} of these are missing, or their order is another.",
                        missing=missing[:5])

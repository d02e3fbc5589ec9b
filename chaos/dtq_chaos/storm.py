"""A storm: random work under random faults, all of it drawn from a seed beforehand.

Comes in: how long it blows. Goes out: a `Scenario` like the others, whose schedule holds the faults
and what is asked meanwhile, each at its millisecond; `storm_player` plays it. Any subset of the
schedule can be played, so a run that was found guilty can be made smaller by removing entries.

Three places have a worker each, behind a link of its own. Whatever ends the worker of a place,
another one is started there. A place has one fault at a time; the broker's restarts come between.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any, Literal

from dtq_conformance.history import Fault, History, Mark

from dtq_chaos.marks import ReadMark
from dtq_chaos.scenario import Scenario
from dtq_chaos.schedule import Ask, Entry, Schedule, When
from dtq_chaos.storm_player import CLIENT, PLACES, play, set_up

NAME = "storm"
SECONDS = 20

TASKS_PER_S = 14
LOCK_MS = 10_000
"""When the leader of the scheduling dies, this much more time passes until what is due is done."""

Followed = Literal["look", "cancel", "requeue", "discard"]

SORTS: dict[str, tuple[float, list[dict[str, Any]], dict[str, Any]]] = {
    "short": (10, [{"sleep": (5, 60)}], {}),
    "medium": (5, [{"sleep": (100, 500)}], {}),
    "outlasts_a_lease": (1.5, [{"sleep": (1_100, 2_500)}], {}),
    "blocks_the_loop": (0.4, [{"block": (100, 900)}], {}),
    "holds_the_interpreter": (0.4, [{"busy": (100, 900)}], {}),
    "fails_at_first": (2, [{"sleep": 20}, {"fail": "retryable", "until_attempt": (1, 4)}],
                       {"max_attempts": 5}),
    "fails_always": (0.7, [{"fail": "retryable"}], {"max_attempts": (1, 4)}),
    "fails_for_good": (0.7, [{"sleep": 10}, {"fail": "permanent"}], {}),
    "fails_unknown": (0.4, [{"fail": "unknown"}], {}),
    "returns_no_json": (0.3, [{"return_unserialisable": True}], {}),
    "runs_too_long": (0.4, [{"sleep": 700}], {"timeout_ms": 250, "max_attempts": (1, 3)}),
    "kills_its_worker_once": (0.25, [{"sleep": 30}, {"kill": True, "until_attempt": 1}],
                              {"max_attempts": 3}),
    "exits_once": (0.15, [{"exit": 3, "until_attempt": 1}, {"sleep": 20}], {"max_attempts": 3}),
    "kills_every_worker": (0.1, [{"kill": True}], {"max_attempts": 3}),
}
"""Each sort of task: how often it is drawn beside the others, its steps and its fields. Where a
pair stands, a number from the first to below the second is drawn."""

AFTERWARDS: dict[Followed, tuple[float, tuple[int, int]]] = {
    "look": (0.5, (1, 3_000)), "cancel": (0.06, (1, 3_000)), "requeue": (0.06, (500, 6_000)),
    "discard": (0.03, (500, 6_000))}
"""What is asked about a task later: of which share of them, and how long after its submission. Most
of what is asked so is refused, since only a dead letter can be requeued or discarded."""
KEYS = 12
PAUSE_EVERY_MS, PAUSED_MS = (6_000, 12_000), (200, 1_500)

FAULTS: dict[str, float] = {"kill_worker": 3, "stop_worker": 3, "terminate_worker": 2.5,
                            "cut_link": 2.5, "delay_link": 2, "lose_replies": 3}
"""What befalls a place, and how often beside the others."""

BRIEF_MS, LONG_MS = (100, 450), (1_400, 2_600)
"""How long a worker is away: surely within its lease less one heartbeat, or surely for longer."""
CALM_MS = (1_500, 4_500)
"""Between two faults of a place: a new worker needs time to start."""
RESTART_EVERY_MS, AWAY_MS = (5_000, 9_000), (100, 2_500)
LOST_EVERY_MS, LOST_MS = (2_500, 6_000), (150, 700)

CLAUSES = ("TASK-01", "STATE-01", "STATE-02", "STATE-03", "DLV-01", "DLV-02", "DLV-05", "DLV-06",
           "DLV-07", "DLV-09", "DLV-12", "DLV-13", "RETRY-01", "RETRY-02", "RETRY-03", "RETRY-04",
           "RETRY-05", "SCHED-01", "DLQ-01", "DLQ-02", "DLQ-03", "KEY-01", "KEY-02", "KEY-04",
           "KEY-05", "KEY-06", "KEY-07")


NEEDS = ("redis-schema", "shutdown", "cancel", "pause", "ttl", "idempotency")


def scenario(*, seconds: int = SECONDS, restarts: bool = True) -> Scenario:
    """A storm of this length. `restarts`: the broker is ours to kill and start again."""
    length_ms = seconds * 1000
    return Scenario(
        NAME, "Random work under random faults: kills, stops, drains, cut and slow links, lost "
        "replies, restarts of the broker.",
        CLAUSES, partial(_plan, length_ms, restarts), set_up, (), asked=partial(_asks, length_ms),
        play=play, marks_of=_marks_of, persistence="always", recovery_more_ms=LOCK_MS,
        needs_toxiproxy=True, needs=NEEDS)


# ---------------------------------------------------------------- what is planned


def _plan(length_ms: int, restarts: bool, draw: random.Random) -> list[Entry]:
    """The faults, by the instant at which they begin."""
    found = [entry for place in range(1, PLACES + 1) for entry in _of_place(place, length_ms, draw)]
    for at_ms in _instants(LOST_EVERY_MS, length_ms, draw):
        found.append(_entry("lose_replies", at_ms, draw.randrange(*LOST_MS), {"link": CLIENT}))
    if restarts:
        for at_ms in _instants(RESTART_EVERY_MS, length_ms, draw):
            found.append(_entry("restart_broker", at_ms, None, {"away": draw.randrange(*AWAY_MS)}))
    return sorted(found, key=lambda entry: entry.when.count)


def _instants(every_ms: tuple[int, int], length_ms: int, draw: random.Random) -> list[int]:
    found, at_ms = [], draw.randrange(*every_ms) // 2
    while at_ms < length_ms:
        found.append(at_ms)
        at_ms += draw.randrange(*every_ms)
    return found


def _of_place(place: int, length_ms: int, draw: random.Random) -> list[Entry]:
    found, at_ms = [], draw.randrange(300, 2_500)
    while at_ms < length_ms:
        fault = draw.choices(list(FAULTS), list(FAULTS.values()))[0]
        parameters: dict[str, Any] = {"place": place}
        lasts_ms: int | None = None
        if fault == "delay_link":
            lasts_ms, latency = draw.randrange(500, 2_500), draw.randrange(20, 200)
            parameters |= {"latency": latency, "jitter": draw.randrange(latency)}
        elif fault not in ("kill_worker", "terminate_worker"):
            lasts_ms = draw.randrange(*draw.choice((BRIEF_MS, LONG_MS)))
        found.append(_entry(fault, at_ms, lasts_ms, parameters))
        at_ms += (lasts_ms or 0) + draw.randrange(*CALM_MS)
    return found


def _entry(fault: str, at_ms: int, lasts_ms: int | None, parameters: dict[str, Any]) -> Entry:
    until = None if lasts_ms is None else When(event="elapsed", count=at_ms + lasts_ms)
    return Entry(fault=fault, when=When(event="elapsed", count=at_ms), until=until,
                 parameters=parameters)


def _asks(length_ms: int, draw: random.Random) -> list[Ask]:
    """What is asked, by its instant: one task of each sort at least, and what follows of some."""
    count = max(len(SORTS), length_ms * TASKS_PER_S // 1000)
    drawn = draw.choices(list(SORTS), [sort[0] for sort in SORTS.values()],
                         k=count - len(SORTS))
    sorts = [*SORTS, *drawn]
    draw.shuffle(sorts)
    found = [Ask(at_ms=at_ms, ask="pause", fields={"lasts_ms": draw.randrange(*PAUSED_MS)})
             for at_ms in _instants(PAUSE_EVERY_MS, length_ms, draw)]
    for sort in sorts:
        task_id, at_ms = f"{draw.getrandbits(128):032x}", draw.randrange(length_ms)
        found.append(Ask(at_ms=at_ms, ask="submit", task_id=task_id, fields=_task(sort, draw)))
        asks = [ask for ask, (share, _) in AFTERWARDS.items() if draw.random() < share]
        found += [Ask(at_ms=at_ms + draw.randrange(*AFTERWARDS[ask][1]), ask=ask, task_id=task_id)
                  for ask in asks]
    return sorted(found, key=lambda ask: ask.at_ms)


def _task(sort: str, draw: random.Random) -> dict[str, Any]:
    _, steps, fields = SORTS[sort]
    return {"steps": [_drawn(step, draw) for step in steps], "label": sort,
            "priority": draw.randrange(10), "max_attempts": draw.choice((2, 3, 5, 5)),
            "delay_ms": draw.choice((0, 0, 0, 0, draw.randrange(50, 3_000))),
            **_sometimes(0.05, draw, "ttl_ms", draw.randrange(200, 5_000)),
            **_sometimes(0.15, draw, "idempotency_key", f"key-{draw.randrange(KEYS)}"),
            **_drawn(fields, draw)}


def _sometimes(share: float, draw: random.Random, name: str, value: Any) -> dict[str, Any]:
    return {name: value} if draw.random() < share else {}


def _drawn(values: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The same with a number drawn for each pair."""
    return {name: draw.randrange(*value) if isinstance(value, tuple) else value
            for name, value in values.items()}


# ---------------------------------------------------------------- what proves that it blew


def _marks_of(schedule: Schedule) -> tuple[ReadMark, ...]:
    return (partial(_every_fault_bit, schedule.entries), _was_seen)


def _every_fault_bit(entries: list[Entry], history: History) -> Mark:
    """Each planned fault struck; one that found no victim did not."""
    bit = {record.number for record in history.of(Fault) if record.phase == "bit"}
    missing = [f"{entry.fault} at {entry.when.count} ms" for number, entry in enumerate(entries)
               if number not in bit]
    told = f"; missing are {', '.join(missing)}" if missing else ""
    return Mark(name="every_fault_bit", held=bool(entries) and not missing,
                sentence=f"{len(bit)} of {len(entries)} planned faults struck{told}.",
                evidence={"missing": missing})


def _was_seen(history: History) -> Mark:
    """What lay on links was seen from outside, and whoever was killed was gone then: of the kill,
    or of a task of its own that was a moment faster."""
    unseen = [f"{record.fault} at {record.detail}" for record in history.of(Fault)
              if record.phase == "bit" and not _is_seen(history, record)]
    return Mark(name="was_seen", held=not unseen, evidence={"unseen": unseen},
                sentence=f"{len(unseen)} faults had no effect that was seen from outside.")


def _is_seen(history: History, bite: Fault) -> bool:
    match bite.fault:
        case "kill_worker":
            return any(life.pid in bite.pids and life.exit_ns is not None
                       and life.exit_ns <= bite.at_ns for life in history.lives)
        case "delay_link":
            return bool(bite.detail["seen_ms"]
                        >= bite.detail["latency_ms"] - bite.detail["jitter_ms"])
        case "lose_replies":
            return bool(bite.detail["lost"])
        case "restart_broker":
            return sum(life.role == "broker" and life.signal == 9 and life.exit_ns is not None
                       and life.exit_ns <= bite.at_ns for life in history.lives) > 0
    return True

"""A storm: all of it is drawn from its seed beforehand, and it proves that it blew."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from dtq_chaos import storm
from dtq_chaos.faults import FAULTS
from dtq_chaos.scenario import as_trial, planned
from dtq_chaos.schedule import Entry, Schedule, When
from dtq_chaos.storm import SORTS, scenario
from dtq_chaos.storm_player import ASKS, CLIENT, PLACES
from dtq_conformance.clauses import load_clauses
from dtq_conformance.history import Mark, Process
from dtq_conformance.target import Submission

from tests.conformance.histories import born, fault, gone, history, killed, ns

SEEDS = range(40)


def plan(seed: int, *, seconds: int = 20, restarts: bool = True) -> Schedule:
    return planned(scenario(seconds=seconds, restarts=restarts), target="reference",
                   broker="embedded", seed=seed)


def test_work_and_faults_are_drawn_from_the_seed() -> None:
    assert plan(1) == plan(1)
    assert plan(1).entries != plan(2).entries
    assert plan(1).asks != plan(2).asks


def test_a_plan_is_the_same_when_it_was_saved() -> None:
    saved = msgspec.json.encode(plan(3))
    assert msgspec.json.decode(saved, type=Schedule) == plan(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_begins_within_the_storm_in_the_order_of_time(seed: int) -> None:
    made = plan(seed, seconds=9)
    instants = [entry.when.count for entry in made.entries]
    assert instants == sorted(instants)
    assert all(0 <= instant < 9_000 for instant in instants)
    asked = [ask.at_ms for ask in made.asks]
    assert asked == sorted(asked)
    assert {entry.when.event for entry in made.entries} == {"elapsed"}
    assert {entry.fault for entry in made.entries} <= FAULTS.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_place_has_one_fault_at_a_time(seed: int) -> None:
    for place in range(1, PLACES + 1):
        own = [entry for entry in plan(seed).entries if entry.parameters.get("place") == place]
        assert own
        for first, second in pairwise(own):
            over = first.until or first.when
            assert second.when.count >= over.count + storm.CALM_MS[0]


def test_every_kind_of_fault_comes_in_some_storm() -> None:
    drawn = {entry.fault for seed in SEEDS for entry in plan(seed).entries}
    assert drawn == {*storm.FAULTS, "restart_broker"}


def test_a_broker_that_is_not_ours_is_not_restarted() -> None:
    entries = [entry for seed in SEEDS for entry in plan(seed, restarts=False).entries]
    assert "restart_broker" not in {entry.fault for entry in entries}


@pytest.mark.parametrize("seed", SEEDS)
def test_each_sort_of_task_is_submitted_within_the_limits(seed: int) -> None:
    asks = [ask for ask in plan(seed, seconds=1).asks if ask.ask == "submit"]
    assert {ask.fields["label"] for ask in asks} == SORTS.keys()
    for ask in asks:
        fields: dict[str, Any] = dict(ask.fields)
        payload = {"steps": fields.pop("steps"), "label": fields.pop("label")}
        made = msgspec.convert({"task_id": ask.task_id, "payload": payload, **fields}, Submission)
        assert 0 <= made.priority <= 9
        assert 1 <= made.max_attempts <= 5
        assert made.delay_ms >= 0


def test_ids_of_tasks_are_all_different() -> None:
    ids = [ask.task_id for ask in plan(1).asks if ask.ask == "submit"]
    assert len(set(ids)) == len(ids)
    assert {ask.task_id for ask in plan(1).asks if ask.ask != "pause"} == set(ids)


def test_everything_that_can_be_asked_is_asked_in_some_storm_and_about_submitted_tasks() -> None:
    asks = [ask for seed in SEEDS for ask in plan(seed).asks]
    assert {ask.ask for ask in asks} == {"submit", "pause", *storm.AFTERWARDS}
    assert storm.AFTERWARDS.keys() == ASKS.keys()
    fields = {name for ask in asks for name in ask.fields}
    assert {"ttl_ms", "idempotency_key", "timeout_ms", "lasts_ms"} <= fields


@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_is_asked_about_after_its_submission(seed: int) -> None:
    submitted: set[str | None] = set()
    for ask in plan(seed).asks:
        assert ask.ask in ("submit", "pause") or ask.task_id in submitted
        submitted.add(ask.task_id)


def test_a_brief_absence_is_within_a_lease_less_a_heartbeat_and_a_long_one_beyond() -> None:
    assert storm.BRIEF_MS[1] < 1_000 - 200
    assert storm.LONG_MS[0] > 1_000


def test_it_is_about_clauses_of_the_contract() -> None:
    assert set(storm.CLAUSES) <= load_clauses().keys()


# What proves that it blew -----------------------------------------------------------------------

def entry(at_ms: int, what: str = "stop_worker") -> Entry:
    return Entry(fault=what, when=When(event="elapsed", count=at_ms), parameters={"place": 1})


def marks(entries: list[Entry], *parts: Any) -> dict[str, Mark]:
    made = msgspec.structs.replace(plan(1), entries=entries)
    trial = as_trial(scenario(), made, with_faults=True)
    return {mark.name: mark for mark in (read(history(*parts)) for read in trial.marks)}


def struck(number: int, what: str, worker: int | None = None, **detail: Any) -> list[Any]:
    return [msgspec.structs.replace(record, fault=what) for record in
            fault("stopped", 100, 200, worker=worker, number=number, **detail)
            if not isinstance(record, list)]


def test_every_planned_fault_must_have_struck() -> None:
    planned_ones = [entry(100), entry(900)]
    both = [struck(0, "stop_worker", 1), struck(1, "stop_worker", 2)]
    assert marks(planned_ones, *both)["every_fault_bit"].held
    missed = marks(planned_ones, both[0])["every_fault_bit"]
    assert not missed.held
    assert missed.sentence == ("1 of 2 planned faults struck; missing are stop_worker at 900 ms.")


def test_a_storm_without_faults_proves_nothing() -> None:
    assert not marks([])["every_fault_bit"].held


@pytest.mark.parametrize(("what", "detail", "others", "seen"), [
    ("lose_replies", {"link": CLIENT, "lost": True}, [], True),
    ("lose_replies", {"link": CLIENT, "lost": False}, [], False),
    ("delay_link", {"seen_ms": 50, "latency_ms": 60, "jitter_ms": 10}, [], True),
    ("delay_link", {"seen_ms": 49, "latency_ms": 60, "jitter_ms": 10}, [], False),
    ("kill_worker", {}, [born(1), killed(1, at=100)], True),
    ("kill_worker", {}, [born(1), gone(1, at=99, code=3)], True),
    ("kill_worker", {}, [born(1), killed(1, at=150)], False),
    ("kill_worker", {}, [born(1)], False),
    ("stop_worker", {}, [], True),
    ("restart_broker", {}, [], False),
    ("restart_broker", {}, [
        Process(at_ns=ns(1), event="start", role="broker", name="broker", pid=9),
        Process(at_ns=ns(90), event="exit", role="broker", name="broker", pid=9, signal=9,
                asked="kill")], True)])
def test_what_a_fault_did_must_have_been_seen_from_outside(
        what: str, detail: dict[str, Any], others: list[Any], seen: bool) -> None:
    worker = 1 if what in ("kill_worker", "stop_worker") else None
    mark = marks([entry(1, what)], *others, struck(0, what, worker, **detail))["was_seen"]
    assert mark.held is seen

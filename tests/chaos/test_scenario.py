"""A scenario: its plan is made in advance, its steps come in order, and its trial says which."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from dtq_chaos.fault import Stage
from dtq_chaos.scenario import Scenario, as_trial, planned
from dtq_chaos.scenarios.canary import SCENARIO as CANARY
from dtq_chaos.schedule import Entry, When
from dtq_conformance.bench import Bench
from dtq_conformance.history import Fault
from dtq_conformance.keyspace import KeySpace

from tests.conformance.miniature import Miniature, bench_of, lab_in


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab, bench_of(Miniature(), lab) as bench:
        yield bench


def drawing(draw: random.Random) -> list[Entry]:
    return [Entry(fault="delete_task", when=When(event="start", count=draw.randint(1, 1000)),
                  parameters={"label": "x"})]


def test_the_plan_is_drawn_from_the_seed() -> None:
    scenario = replace(CANARY, plan=drawing)
    plans = [planned(scenario, target="t", broker="b", seed=seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1]
    assert plans[0].entries != plans[2].entries
    assert (plans[0].scenario, plans[0].target, plans[0].broker, plans[0].seed) == (
        "canary", "t", "b", 1)


def told(bench: Bench, monkeypatch: pytest.MonkeyPatch, *, with_faults: bool) -> list[str]:
    """The steps of a small scenario, in the order in which they were done."""
    steps: list[str] = []
    monkeypatch.setattr(bench, "records", [])

    def delete(_: KeySpace, task_id: str) -> bool:
        steps.append("fault")
        return True

    def set_up(stage: Stage) -> None:
        steps.append("set up")
        stage.bench.submit(label="deleted")

    def afterwards(stage: Stage) -> None:
        steps.append("afterwards")

    monkeypatch.setattr(KeySpace, "delete_task", delete)
    scenario: Scenario = replace(CANARY, set_up=set_up, afterwards=afterwards)
    schedule = planned(scenario, target="t", broker="b", seed=1)
    as_trial(scenario, schedule, with_faults=with_faults).drive(bench)
    return steps


def test_it_is_set_up_then_the_faults_strike_then_the_rest_is_done(
        bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(bench, monkeypatch, with_faults=True) == ["set up", "fault", "afterwards"]
    phases = [record.phase for record in bench.records if isinstance(record, Fault)]
    assert phases == ["begin", "bit", "end"]


def test_without_faults_nothing_strikes_and_no_fault_is_recorded(
        bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(bench, monkeypatch, with_faults=False) == ["set up", "afterwards"]
    assert not [record for record in bench.records if isinstance(record, Fault)]


def test_the_trial_is_the_scenario_and_saves_its_schedule(tmp_path: Path) -> None:
    schedule = planned(CANARY, target="t", broker="b", seed=1)
    trial = as_trial(CANARY, schedule, with_faults=True)
    assert (trial.room, trial.name, trial.story) == ("chaos", "canary", CANARY.story)
    assert (trial.clauses, trial.marks, trial.expects) == (CANARY.clauses, CANARY.marks,
                                                           "violated")
    assert msgspec.convert(trial.files["schedule.json"], type(schedule)) == schedule

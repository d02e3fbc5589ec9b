"""The scenarios as a list: each plans known faults, has marks, and is about known clauses."""

from __future__ import annotations

import pytest
from dtq_chaos import storm
from dtq_chaos.faults import FAULTS
from dtq_chaos.scenario import Scenario, planned
from dtq_chaos.scenarios import SCENARIOS
from dtq_conformance.clauses import load_clauses

EACH = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


@EACH
def test_a_scenario_is_about_clauses_of_the_contract(scenario: Scenario) -> None:
    assert scenario.clauses
    assert set(scenario.clauses) <= set(load_clauses())
    assert len(set(scenario.clauses)) == len(scenario.clauses)


@EACH
def test_a_scenario_proves_by_marks_that_its_faults_bit(scenario: Scenario) -> None:
    assert scenario.marks
    assert scenario.story.endswith(".")


@EACH
def test_a_scenario_plans_known_faults_and_the_same_ones_for_a_seed(scenario: Scenario) -> None:
    schedule = planned(scenario, target="t", broker="b", seed=3)
    assert {entry.fault for entry in schedule.entries} <= set(FAULTS)
    assert schedule == planned(scenario, target="t", broker="b", seed=3)


def test_only_the_canary_expects_to_be_convicted() -> None:
    assert [name for name, each in SCENARIOS.items() if each.expects == "violated"] == ["canary"]


def test_each_fault_is_used_by_a_scenario_or_drawn_in_storms() -> None:
    planned_somewhere = {entry.fault for each in SCENARIOS.values()
                         for entry in planned(each, target="t", broker="b", seed=1).entries}
    assert planned_somewhere | set(storm.FAULTS) == set(FAULTS)

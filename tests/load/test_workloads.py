"""What holds of every workload."""

from __future__ import annotations

import random

import pytest
from dtq_conformance import plan
from dtq_conformance.clauses import load_clauses
from dtq_load.workload import Workload
from dtq_load.workloads import WORKLOADS

EACH = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda each: each.name)


@EACH
def test_a_workload_tests_clauses_that_exist(workload: Workload) -> None:
    assert set(workload.clauses) <= load_clauses().keys()


@EACH
def test_its_tasks_are_repeated_by_the_seed(workload: Workload) -> None:
    def drawn(seed: int) -> list[object]:
        source = random.Random(seed)
        return [workload.submission(source, number) for number in range(20)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@EACH
def test_its_tasks_end_well_and_cover_all_priorities(workload: Workload) -> None:
    source = random.Random(1)
    tasks = [workload.submission(source, number) for number in range(20)]
    assert {task.priority for task in tasks} == set(range(10))
    assert {plan.ending({"payload": task.payload}, 1) for task in tasks} == {"ok"}


@EACH
def test_a_workload_ends_and_one_that_does_harm_has_a_mark(workload: Workload) -> None:
    assert workload.tasks or workload.seconds
    assert (workload.fire is None) == (not workload.marks)

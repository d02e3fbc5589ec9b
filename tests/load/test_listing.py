"""The list of workloads."""

from __future__ import annotations

import json

from dtq_load.__main__ import main
from dtq_load.workloads import WORKLOADS
from pytest import CaptureFixture


def test_each_workload_is_listed_with_its_story_and_its_clauses(
        capsys: CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    assert [(each["name"], each["story"], tuple(each["clauses"]))
            for each in json.loads(capsys.readouterr().out)] == \
        [(each.name, each.story, each.clauses) for each in WORKLOADS.values()]


def test_the_list_is_readable(capsys: CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in WORKLOADS)
